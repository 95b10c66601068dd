// Many points on a canvas: each style is painted once, and its pixels are copied to each point. Drawing 10,000 points with the
// canvas API takes some hundred milliseconds without a GPU; this takes a few.
export const SHAPES = {
  circle: "M5 1a4 4 0 1 1 0 8a4 4 0 1 1 0-8",
  square: "M1.5 1.5h7v7h-7z",
  diamond: "M5 .5L9.5 5L5 9.5L.5 5z",
  "triangle-up": "M5 1l4.5 8h-9z",
  cross: "M3.5 1h3v2.5H9v3H6.5V9h-3V6.5H1v-3h2.5z",
};
const TURNS = { up: 0, right: 1, down: 2, left: 3 };

function canvas(width, height) {
  const element = Object.assign(document.createElement("canvas"), { width, height });
  const pen = /** @type {CanvasRenderingContext2D} */ (element.getContext("2d", { willReadFrequently: true }));
  return { element, pen };
}

export class Dots {
  constructor(width, height, ratio) {
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.stamps = new Map();
    this.layer = canvas(width, height);
    this.image = this.layer.pen.createImageData(width, height);
  }

  // The stamp of a look: {shape, fill, size (pixels across), opacity, rim, edge (the way an arrow points)}.
  of(look) {
    const key = JSON.stringify(look);
    if (!this.stamps.has(key)) this.stamps.set(key, this.paint(look));
    return this.stamps.get(key);
  }

  paint({ shape, fill, size, opacity = 1, rim = "", edge = "" }) {
    const side = Math.ceil((size + 3) * this.ratio);
    const { pen } = canvas(side, side);
    pen.globalAlpha = opacity;
    pen.translate(side / 2, side / 2);
    pen.rotate(edge ? (TURNS[edge] * Math.PI) / 2 : 0);
    pen.scale((size / 10) * this.ratio, (size / 10) * this.ratio);
    pen.translate(-5, -5);
    const path = new Path2D(SHAPES[edge ? "triangle-up" : shape]);
    pen.fillStyle = fill;
    pen.fill(path);
    if (rim) {
      pen.strokeStyle = rim;
      pen.lineWidth = 10 / size;
      pen.stroke(path);
    }
    return this.pixels(pen.getImageData(0, 0, side, side));
  }

  // What is seen of a stamp: where, and red, green, blue and alpha.
  pixels({ data, width }) {
    const seen = Array.from({ length: data.length / 4 }, (_, i) => i).filter((i) => data[4 * i + 3] > 4);
    const half = width / 2;
    return {
      half,
      side: width,
      count: seen.length,
      down: Int16Array.from(seen, (i) => Math.floor(i / width)),
      across: Int16Array.from(seen, (i) => i % width),
      colors: Uint8Array.from(seen.flatMap((i) => [...data.subarray(4 * i, 4 * i + 4)])),
    };
  }

  clear() {
    this.image.data.fill(0);
  }

  // A stamp laid over what is there, its middle at a pixel.
  lay(stamp, x, y) {
    const left = Math.round(x - stamp.half),
      top = Math.round(y - stamp.half),
      { width, height } = this,
      out = this.image.data;
    if (left < 0 || top < 0 || left + stamp.side > width || top + stamp.side > height) return;
    const { count, down, across, colors } = stamp;
    for (let i = 0; i < count; i += 1) {
      const at = 4 * ((top + down[i]) * width + left + across[i]),
        from = 4 * i,
        own = colors[from + 3],
        old = out[at + 3];
      if (old === 0 || own === 255) {
        ((out[at] = colors[from]),
          (out[at + 1] = colors[from + 1]),
          (out[at + 2] = colors[from + 2]),
          (out[at + 3] = own));
        continue;
      }
      const below = (old * (255 - own)) / 255,
        all = own + below;
      out[at] = (colors[from] * own + out[at] * below) / all;
      out[at + 1] = (colors[from + 1] * own + out[at + 1] * below) / all;
      out[at + 2] = (colors[from + 2] * own + out[at + 2] * below) / all;
      out[at + 3] = all;
    }
  }

  // All that was laid, onto a canvas of the same size.
  onto(pen) {
    this.layer.pen.putImageData(this.image, 0, 0);
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.drawImage(this.layer.element, 0, 0);
    pen.restore();
  }
}
