() => {
  // What a page must hold for people who do not see or do not use a mouse; returns what is wrong.
  const found = [];
  const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const one = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * one(r) + 0.7152 * one(g) + 0.0722 * one(b);
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const seen = (node) =>
    node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && node.getClientRects().length;
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((part) => part.nodeType === 3 && part.textContent.trim());
    if (!text || !seen(node) || node.closest("svg, .hidden, .skip, option")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5)
      found.push(`contrast ${ratio.toFixed(2)}: ${node.tagName} ${node.textContent.trim().slice(0, 40)}`);
  }
  for (const node of document.querySelectorAll("input, select, textarea, button, a[href], progress, [role=slider]")) {
    if (!seen(node)) continue;
    const label =
      (node.labels && [...node.labels].map((one) => one.textContent).join(" ")) ||
      node.getAttribute("aria-label") ||
      (node.getAttribute("aria-labelledby") || "")
        .split(" ")
        .map((id) => document.getElementById(id)?.textContent || "")
        .join(" ") ||
      (["A", "BUTTON"].includes(node.tagName) ? node.textContent : "");
    if (!label.trim()) found.push(`no label: ${node.outerHTML.slice(0, 80)}`);
  }
  for (const node of document.querySelectorAll("[aria-describedby], [aria-labelledby]"))
    for (const name of ["aria-describedby", "aria-labelledby"])
      for (const id of (node.getAttribute(name) || "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) found.push(`${name} points nowhere: ${id}`);
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids.filter((one, i) => ids.indexOf(one) !== i))) found.push(`two elements are called ${id}`);
  for (const node of document.querySelectorAll("img, canvas"))
    if (!node.hasAttribute("alt") && !node.getAttribute("aria-label")) found.push(`no words for ${node.tagName}`);
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  for (const landmark of ["header", "main", "footer"])
    if (document.querySelectorAll(landmark).length !== 1) found.push(`not one ${landmark}`);
  if (!document.documentElement.lang || !document.title) found.push("no language or title");
  if (document.documentElement.scrollWidth > innerWidth + 1)
    found.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  return found;
};
