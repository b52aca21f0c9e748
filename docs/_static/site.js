"use strict";
document.addEventListener("DOMContentLoaded", function () {
  /* The theme's buttons that fold a part of the side bar have no words. */
  document.querySelectorAll("summary:not([aria-label])").forEach(function (button) {
    var link = button.closest("li") && button.closest("li").querySelector("a");
    if (!button.textContent.trim() && link) { button.setAttribute("aria-label", "Pages of " + link.textContent.trim()); }
  });
  /* What scrolls and has nothing to tab to can be reached by keys all the same. */
  function reachable() {
    document.querySelectorAll(".pst-scrollable-table-container, div.cell_output, div.highlight pre, div.math, .bd-article p, .bd-article .drawing").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth && !box.querySelector("a, button")) { box.tabIndex = 0; }
    });
  }
  reachable();
  addEventListener("resize", reachable);
  /* All metrics: a filter by words of the name and the title, and one by what MLflow gets. */
  var table = document.querySelector("#all-metrics table");
  if (!table) { return; }
  var rows = Array.from(table.tBodies[0].rows), form = document.createElement("form");
  form.className = "filter";
  form.innerHTML = '<label>Filter <input type="search" autocomplete="off" placeholder="recall, calibration …"></label> ' +
    '<label><input type="checkbox"> headline only</label> <span role="status"></span>';
  var words = form.querySelector("[type=search]"), headline = form.querySelector("[type=checkbox]");
  function show() {
    var wanted = words.value.toLowerCase().split(/\s+/), count = 0;
    rows.forEach(function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !wanted.every(function (word) { return text.includes(word); }) || (headline.checked && !text.includes("•"));
      count += !row.hidden;
    });
    form.querySelector("[role=status]").textContent = count + " of " + rows.length;
  }
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("input", show);
  (table.closest(".pst-scrollable-table-container") || table).before(form);
  show();
});
