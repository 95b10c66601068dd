"""The device of a sweep and of a score: requested, absent, lost, and reported."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.data.microdata import Microdata
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.kernels import device, gpu
from sdcmap.kernels.device import CpuFallbackWarning, GpuUnavailable, gpu_name
from sdcmap.reports.report_tables import history
from sdcmap.study import device_choice as settling
from sdcmap.study.folder import Study
from sdcmap.study.progress import progress_bar

NEAREST = sm.risk.NearestRecord()


def has_gpu() -> bool:
    try:
        gpu_name()
    except GpuUnavailable:
        return False
    return True


without = pytest.mark.skipif(has_gpu(), reason="a GPU is there")


@pytest.fixture(scope="module")
def people() -> Microdata:
    return sm.demo.population(200, seed=4)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_fallback_reasons", [])


def plan_of(people: Microdata) -> sm.Plan:
    return sm.Plan(methods=[sm.Noise(on="wage", variance=0.2)], measures=[NEAREST], replicates=2, seed=7)


def values(scores: sm.Scores) -> list[float | None]:
    return scores.score.sort("candidate", "measure")["value"].to_list()


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that reports its name and then fails."""

    def gone(*_: object, **__: object) -> None:
        raise GpuUnavailable("the GPU does not answer")

    monkeypatch.setattr(settling, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(gpu, "KERNELS", dict.fromkeys(gpu.KERNELS, gone))


def test_unknown_device_raises_plan_error(people: Microdata) -> None:
    with pytest.raises(PlanError, match="the device must be one of cpu, gpu, auto. Did you mean 'gpu'?"):
        sm.sweep(people, plan_of(people), device="gpuu")


@without
def test_without_a_gpu_auto_uses_the_cpu_and_gpu_fails(people: Microdata, tmp_path: Path) -> None:
    wanted = values(sm.sweep(people, plan_of(people), workers=1))
    with pytest.warns(CpuFallbackWarning, match="the attacks run on the CPU: CuPy is not installed|there is no GPU"):
        scores = sm.sweep(people, plan_of(people), tmp_path / "study", workers=1, device="auto")
    assert values(scores) == wanted
    assert "gpus" not in Study.manifest_of(tmp_path / "study")
    with pytest.raises(SdcmapError, match="^no GPU can be used: .*; device=.auto. would continue without one.$"):
        sm.sweep(people, plan_of(people), workers=1, device="gpu")
    masked = sm.mask(people, sm.Noise(on="wage"), seed=1)
    with pytest.raises(SdcmapError, match="^no GPU can be used"):
        sm.score(people, masked, NEAREST, device="gpu")


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_gpu_lost_during_a_sweep(people: Microdata, lost: None, tmp_path: Path, engine: str) -> None:
    with pytest.raises(SdcmapError, match="^no GPU can be used: the GPU does not answer; "):
        sm.sweep(people, plan_of(people), tmp_path / "asked", workers=1, engine=engine, device="gpu")
    with Study.open(tmp_path / "asked") as study:
        assert study.connection.execute("select count(*) from candidate where status <> 'ok'").fetchone() == (0,)
    wanted = values(sm.sweep(people, plan_of(people), workers=1))
    with pytest.warns(CpuFallbackWarning, match="the attacks run on the CPU: the GPU does not answer."):
        assert values(sm.sweep(people, plan_of(people), workers=1, engine=engine, device="auto")) == wanted


def test_gpu_is_recorded_and_shown_in_the_internal_report(people: Microdata, lost: None, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CpuFallbackWarning)
        for _ in range(2):
            sm.sweep(people, plan_of(people), tmp_path / "study", workers=1, device="auto")
    with Study.open(tmp_path / "study") as study:
        assert study.manifest["gpus"] == ["NVIDIA H200"]
        assert history(study.manifest)["gpus"] == ["NVIDIA H200"]
        assert "gpus" not in history(study.manifest, public_name=str)


def test_progress_bar_names_the_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(show=True, gpu="NVIDIA H200") as report:
        report(1, 2)
    assert "candidates on NVIDIA H200" in capsys.readouterr().err


@without
def test_command_line_reports_a_missing_gpu_in_one_line(people: Microdata, tmp_path: Path) -> None:
    sm.write(people, tmp_path / "people.csv")
    (tmp_path / "plan.toml").write_text(
        'replicates = 1\n[data]\npath = "people.csv"\nnumeric = ["wage", "total"]\n[[methods]]\ntype = "Noise"\n'
        'on = ["wage"]\n[[measures]]\ntype = "NearestRecord"\n'
    )
    study = tmp_path / "study"
    said = sdcmap("sweep", tmp_path / "plan.toml", "-o", study, "--workers", 1, "--device", "gpu", code=2)
    assert said.stderr.count("no GPU can be used") == 1 and not study.exists()
    said = sdcmap("sweep", tmp_path / "plan.toml", "-o", study, "--workers", 1, "--device", "auto", "--quiet")
    assert said.stderr.count("the attacks run on the CPU") == 1
    score = "score", tmp_path / "people.csv", tmp_path / "people.csv", "--numeric", "wage", "--measure", "NearestRecord"
    assert "no GPU can be used" in sdcmap(*score, "--device", "gpu", code=2).stderr
