() => {
  // What a printed-and-read page must hold beside accessibility.js: order of headings, heads of tables, words for pictures.
  const found = [];
  let level = 0;
  for (const node of document.querySelectorAll("h1, h2, h3, h4")) {
    const own = Number(node.tagName[1]);
    if (own > level + 1) found.push(`h${own} after h${level}: ${node.textContent}`);
    level = own;
  }
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead th")];
    const widest = Math.max(...[...table.rows].map((row) => row.cells.length));
    if (heads.length !== widest)
      found.push(`${heads.length} heads of ${widest} columns: ${table.textContent.trim().slice(0, 40)}`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const named = svg.closest("[role=img][aria-label]");
    if (!named || !named.getAttribute("aria-label").trim()) found.push("a picture without words");
  }
  for (const link of document.querySelectorAll("script, link[href], img[src], iframe"))
    found.push(`loads ${link.tagName}`);
  return found;
};
