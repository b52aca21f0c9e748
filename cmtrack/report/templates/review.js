  // What a reader chooses: the runs to list, a metric to rank by, and the run that the chosen one is compared with.
  function at(id) { return document.getElementById(id); }
  var main = document.querySelector("main"), chosen = main.dataset.chosen, rival = main.dataset.rival;
  var ranked = Array.from(document.querySelector("table.ranking").tBodies[0].rows), names = {};
  ranked.forEach(function (row) { names[row.dataset.run] = row.dataset.name; });

  // -- the run to compare with ---------------------------------------------------------------------------------------
  function mark(held) {  // in the figures, all others are pale while one is held
    document.body.classList.toggle("comparing", held);
    document.querySelectorAll("[data-run]").forEach(function (element) {
      element.classList.toggle("picked", element.dataset.run === rival);
      element.classList.toggle("ours", element.dataset.run === chosen);
      element.querySelectorAll("button.pick").forEach(function (button) { button.setAttribute("aria-pressed", String(element.dataset.run === rival)); });
    });
  }
  function show() {
    var rows = at("pair-rows"), select = at("pair-with");
    document.querySelectorAll("[data-pair]").forEach(function (part) { part.hidden = part.dataset.pair !== rival; });
    if (select) {
      select.value = rival;
      document.querySelectorAll(".rival").forEach(function (span) { span.textContent = select.selectedOptions[0].text; });
    }
    if (rows) { at("pair-no-rows").hidden = Boolean(rows.querySelector('[data-pair="' + rival + '"]')); }
    dispatchEvent(new Event("resize"));  // a table that was hidden may not fit
  }
  function pick(number) {
    if (number === chosen || !(number in names)) { return; }
    var held = !(document.body.classList.contains("comparing") && rival === number);  // the same run once more lets go
    rival = number;
    mark(held);
    show();
    at("pair-live").textContent = names[rival] + " is compared with " + names[chosen] + ".";
    at("pair-bar").hidden = !at("pair");
  }
  document.querySelectorAll("tr[data-run] td.run").forEach(function (cell) {  // names become buttons
    var number = cell.parentNode.dataset.run, button = document.createElement("button");
    if (number === chosen || !(number in names)) { return; }
    button.type = "button";
    button.className = "pick";
    button.title = "Compare with " + names[chosen];
    button.textContent = cell.firstChild.textContent;
    button.addEventListener("click", function () { pick(number); });
    cell.replaceChild(button, cell.firstChild);
  });
  document.addEventListener("click", function (event) {
    var found = event.target.closest("button, a, input, select, th") ? null : event.target.closest("[data-run]");
    if (found && !String(getSelection())) { pick(found.dataset.run); }
  });
  if (at("pair")) {
    at("pair-knob").hidden = at("hint").hidden = false;
    at("pair-with").addEventListener("change", function () { pick(at("pair-with").value); at("pair-bar").hidden = true; });
    at("pair-show").addEventListener("click", function () { at("pair").scrollIntoView(); at("pair-with").focus({ preventScroll: true }); });
    at("pair-close").addEventListener("click", function () { at("pair-bar").hidden = true; });
  }

  // -- the metric to rank by -----------------------------------------------------------------------------------------
  function rank() {
    document.querySelectorAll("[data-metric]").forEach(function (part) { part.hidden = part.dataset.metric !== at("by-metric").value; });
    dispatchEvent(new Event("resize"));
  }
  if (at("by-metric")) {
    at("other-metrics").hidden = false;
    at("by-metric").addEventListener("change", rank);
    rank();
  }

  // -- the runs to list ----------------------------------------------------------------------------------------------
  function sieve() {
    var wanted = at("find-name").value.trim().toLowerCase(), tied = at("find-tied").checked;
    function named(row) { return row.dataset.run in names && names[row.dataset.run].toLowerCase().indexOf(wanted) >= 0; }
    function near(row) { return !tied || !row.classList.contains("behind"); }
    var listed = ranked.filter(function (row) { return named(row) && near(row); });
    var kept = new Set(listed.map(function (row) { return row.dataset.run; }));
    document.querySelectorAll("tr[data-run]").forEach(function (row) {
      var own = row.closest("table.answer");  // who may be the best by this metric
      row.hidden = Boolean(wanted || tied) && !(own ? named(row) && near(row) : kept.has(row.dataset.run));
    });
    document.querySelectorAll("button.unfold").forEach(function (button) { if (wanted) { button.click(); } });
    at("find-live").textContent = wanted || tied ? listed.length + " of " + ranked.length + " runs" : "";
  }
  if (ranked.length >= 8) {
    at("find").hidden = false;
    at("find-name").addEventListener("input", sieve);
    at("find-tied").addEventListener("change", sieve);
  }
  mark(false);
  if (rival) { show(); }
