"use strict";
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);

  function themedLayout(layout) {
    const style = getComputedStyle(root);
    const color = (name) => style.getPropertyValue(name).trim();
    const axis = { gridcolor: color("--line"), zerolinecolor: color("--line"), linecolor: color("--line") };
    return {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: style.fontFamily || "sans-serif", size: 12, color: color("--ink") },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: color("--soft"), activecolor: color("--accent") },
      hoverlabel: { bgcolor: color("--card"), bordercolor: color("--line"), font: { color: color("--ink") } },
      xaxis: { ...axis, ...layout.xaxis },
      yaxis: { ...axis, ...layout.yaxis },
    };
  }

  function drawFigures() {
    if (typeof Plotly === "undefined") return;
    // Named one by one: the default bar also offers what needs the network.
    const modeBarButtons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
    const config = { displaylogo: false, responsive: true, modeBarButtons };
    for (const plot of document.querySelectorAll("[data-figure]")) {
      const { data, layout } = figures[plot.dataset.figure];
      Plotly.react(plot, data, themedLayout(layout), config);
    }
  }

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function compareCells(a, b, column, direction) {
    const [x, y] = [a, b].map((row) => row.cells[column].dataset.value ?? "");
    if (x === "" || y === "") return x === y ? 0 : x === "" ? 1 : -1; // what was not measured goes last, both ways
    const numeric = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
    return direction * (numeric ? Number(x) - Number(y) : x.localeCompare(y, undefined, { numeric: true }));
  }

  function sortTable(heading) {
    const table = heading.closest("table");
    const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => compareCells(a, b, heading.cellIndex, direction));
    body.append(...rows);
  }

  function filterRows() {
    const text = document.getElementById("filter-text").value.trim().toLowerCase();
    const verdict = document.getElementById("filter-verdict").value;
    const rows = [...document.querySelectorAll("#ranking tbody tr")];
    for (const row of rows) {
      const fits = row.textContent.toLowerCase().includes(text) && (!verdict || row.dataset.key === verdict);
      row.hidden = !fits;
    }
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("filter-count").textContent = `${shown} of ${rows.length} trials`;
  }

  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => sortTable(button.closest("th")));
  }
  if (document.getElementById("ranking")) {
    document.getElementById("filter-text").addEventListener("input", filterRows);
    document.getElementById("filter-verdict").addEventListener("change", filterRows);
    filterRows();
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    drawFigures();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawFigures);
  drawFigures();
})();
