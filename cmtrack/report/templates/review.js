  // The review as a place to decide in: questions with knobs, a filter, and any run against the chosen one.
  var holder = document.getElementById("review-data");
  var data = JSON.parse(holder.textContent), runs = data.runs, size = data.labels.length;
  var byNumber = {}, chosen;
  runs.forEach(function (run) {
    byNumber[run.run] = run;
    run.values = unpacked(run.values);
    if (run.matrix) {
      run.matrix = dense(run.matrix, size * size);
      run.squares = run.squares ? dense(run.squares, size * size) : run.matrix;
    }
    if (run.scores) {
      ["scores", "score_squares"].forEach(function (name) {
        if (run[name]) { run[name] = run[name].map(function (own) { return dense(own, data.thresholds.length + 1); }); }
      });
      run.score_squares = run.score_squares || run.scores;
    }
  });
  chosen = byNumber[data.chosen];
  var first = runs.find(function (run) { return run !== chosen; }) || null;
  var state = { question: "metric", other: first ? first.run : null };

  var namespace = document.createRange().createContextualFragment("<svg></svg>").firstChild.namespaceURI;
  function make(name, attributes, children) {
    var svg = ["svg", "path", "circle", "line", "g", "text", "rect"].indexOf(name) >= 0;
    var element = svg ? document.createElementNS(namespace, name) : document.createElement(name);
    Object.keys(attributes || {}).forEach(function (key) { element.setAttribute(key, attributes[key]); });
    (children || []).forEach(function (child) { element.append(child); });
    return element;
  }
  function at(id) { return document.getElementById(id); }
  function capital(text) { return text[0].toUpperCase() + text.slice(1); }
  function fill(select, options, ofData) {  // names of the data stand as they are
    select.replaceChildren.apply(select, options.map(function (text, k) { return make("option", { value: k }, [ofData ? text : capital(text)]); }));
  }

  // -- questions: each gives rows of value and interval, and what is to be copied -----------------------------------
  var literal = {
    python: function (value) {
      if (value !== null && value.written) { return value.written; }
      if (value === true) { return "True"; }
      if (value === false) { return "False"; }
      if (Array.isArray(value)) { return "[" + value.map(literal.python).join(", ") + "]"; }
      if (value !== null && typeof value === "object") {
        return "{" + Object.keys(value).map(function (key) { return literal.python(key) + ": " + literal.python(value[key]); }).join(", ") + "}";
      }
      return literal.json(value);
    },
    json: function (value) {  // marks that reorder text are spelled out
      return JSON.stringify(value).replace(/[\u007f-\u009f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/g, function (c) {
        return "\\u" + ("000" + c.charCodeAt(0).toString(16)).slice(-4);
      });
    },
    shell: function (value) { return /^[\w@%+=:,./-]+$/.test(value) ? value : "'" + value.replace(/'/g, "'\"'\"'") + "'"; },
  };
  function division() { return placesIn(data.partitions[at("ask-groups").value].inside, modes()); }
  function six(run, places) {
    return moved([run.matrix, run.squares].map(function (counts) { return reduced(counts, places); }));
  }
  function share() {  // of positives where the runs will be used; null: as in the rows
    var text = at("ask-share").value;
    return text === "" && !at("ask-share").validity.badInput ? null : Number((Number(text || NaN) / 100).toPrecision(12));
  }
  function moved(counts) {
    var factors = factorsOf(counts[0], share());
    return counts.map(function (own, k) { return movedBy(own, factors, k + 1); });
  }
  function where(part) {
    return share() === null ? "" : ", where “" + part.shown[0] + "” is " + Number((100 * share()).toPrecision(6)) + " % of the rows";
  }
  function refusedShare() { return share() === null || (share() > 0 && share() < 1) ? "" : "A share lies between 0 and 100 %."; }
  function modes() {
    var part = data.partitions[at("ask-groups").value];
    return ["ask-mode-0", "ask-mode-1"].map(function (id, group) { return at(id).value === "given" ? part.modes[group] : at(id).value; });
  }
  function alone(part, group) { return part.inside.split(group ? "0" : "1").length === 2; }
  function asGiven() {
    var part = data.partitions[at("ask-groups").value];
    return part.given && JSON.stringify(modes()) === JSON.stringify(part.modes);
  }
  function grouping() {
    var part = data.partitions[at("ask-groups").value];
    function members(flag) { return data.labels.filter(function (_, k) { return part.inside[k] === flag; }); }
    var mode = modes().map(function (own) {
      return Array.isArray(own) ? own.map(function (pair) { return [data.labels[pair[0]], data.labels[pair[1]]]; }) : own;
    });
    return { groups: [[part.names[0], members("1")], [part.names[1], members("0")]], mode: mode, include_diagonal: false,
             positive: part.names[0], name: part.step };
  }
  function costs() { return ["ask-fn", "ask-fp", "ask-im"].map(function (id) { return Number(at(id).value); }); }
  function priced() { var own = costs(); return [0, own[0], own[2], own[1], 0, own[2]]; }
  function costData() {
    var part = data.partitions[at("ask-groups").value], own = costs(), names = part.classes ? labelsOf(part) : part.names;
    var out = { costs: [[names[0], names[1], own[0]], [names[1], names[0], own[1]]], "default": own[2] };
    if (!(part.classes && asGiven())) { out.step = part.step; }
    return out;
  }
  function labelsOf(part) { return asGiven() ? [data.labels[part.inside.indexOf("1")], data.labels[part.inside.indexOf("0")]] : part.names; }
  function ofCounts() { return data.formulas.metrics.filter(function (metric) { return metric.better; }); }
  function withCounts(run, counts, metric) {
    var found = judged(metric, data.formulas, counts[0], counts[1], data);
    if (!run.by_rows) { found.low = found.high = NaN; }
    found.counts = counts[0];
    return found;
  }
  var tables = {};
  function opened(name) {  // the patterns of rows, where the page has them
    var own = data.rows[name];
    if (own && !tables[name]) {
      tables[name] = { width: own.width, times: own.times, weights: own.weights || own.times.map(function () { return 1; }),
                       codes: Uint8Array.from(atob(own.codes), function (c) { return c.charCodeAt(0); }) };
    }
    return tables[name];
  }
  // Says who may be the best, where the rows tell: of each row and run its place among the six counts, and the slopes.
  function decide(found, by) {
    var own = opened(by.table), rule = data.rule;
    if (found.refused || !own || found.rows.some(function (row) { return !isFinite(row.value); })) { return found; }
    function code(p, k) { return own.codes[(p + 1) * own.width - runs.length - 1 + k]; }  // 0 is the class or the side
    var held = Array.from(own.times.keys()).filter(function (p) { return !by.only || by.only(function (k) { return own.codes[p * own.width + k]; }); });
    var rows = { times: held.map(function (p) { return own.times[p]; }), classes: held.map(function (p) { return code(p, 0); }) };
    var places = runs.map(function (_, r) { return held.map(function (p) { return by.place(code(p, 0), code(p, r + 1)); }); });
    rows.answers = by.classes ? runs.map(function (_, r) { return held.map(function (p) { return code(p, r + 1); }); }) : places;
    rows.weights = held.map(function (p) { return own.weights[p]; });
    function countsOf(r) {
      var six = [0, 0, 0, 0, 0, 0];
      held.forEach(function (_, k) { six[places[r][k]] += rows.times[k] * rows.weights[k]; });
      return six;
    }
    var factors = factorsOf(countsOf(0), by.share);
    rows.weights = rows.weights.map(function (w, k) { return w * factors[places[0][k] < 3 ? 0 : 1]; });
    var psi = runs.map(function (_, r) {
      var six = countsOf(r), slope = by.slopes(six), mean = slope && dot(six, slope), total = sum(six);
      return slope && places[r].map(function (k) { return total * slope[k] - mean; });
    });
    if (psi.some(function (own) { return own === null; })) { return found; }
    var values = found.rows.map(function (row) { return row.value; }), best = order(found.rows, found.better)[0];
    var ends = found.rows.map(function (row) { return row.end || [0, Infinity, false]; });
    var tied = mayBeBest(values, psi, rows, found.better, rule.places, rule, ends);
    found.standing = tied.map(function (own, r) { return r === best && own ? "leads" : own ? "tied" : "behind"; });
    found.note = " " + rule.tied[tied.filter(Boolean).length] + "." + (found.more || "");
    return found;
  }
  function slopesOf(metric) {
    return function (six) { return slopes(data.formulas, metric.place, six, function (k) { return six[k] !== 0; }); };
  }
  function byDivision(places, more) {
    return Object.assign({ table: "rows", share: null, place: function (i, j) { return places[i * size + j]; } }, more);
  }
  function decideAsGiven(found, name, only) {  // by a metric of the groups as evaluated, or of hits
    var part = data.partitions[0], hits = data.rule && data.rule.hits[name], inside = "1".repeat(size);
    var metric = data.formulas && data.formulas.metrics.find(function (own) { return own.name === (hits || name); });
    if (!metric || found.standing || !(hits || part.given)) { return found; }
    var places = hits ? placesIn(inside, ["strict", "strict"]) : placesIn(part.inside, part.modes);
    return decide(found, byDivision(places, { slopes: slopesOf(metric), only: only, classes: Boolean(hits) }));
  }
  var needsTests = " These are intervals of single runs. To see which runs may be the best, run the code below: it compares them row by row.";
  var questions = {
    metric: {
      ask: function () {
        var place = Number(at("ask-metric").value), metric = data.metrics[place];
        return decideAsGiven({ better: metric.better, says: "By " + metric.title, fill: { metric: metric.name }, text: "metric", standing: metric.standing,
                 note: metric.standing ? " " + metric.tied + "." : needsTests,
                 rows: runs.map(function (run) { return { value: run.values[3 * place], low: run.values[3 * place + 1], high: run.values[3 * place + 2] }; }) }, metric.name);
      },
    },
    groups: {
      ask: function () {
        var metric = ofCounts()[at("ask-of-groups").value], part = data.partitions[at("ask-groups").value], places = division();
        return decide({ better: metric.better, says: "By " + metric.title + ", positive group “" + part.shown[0] + "”" + where(part), counts: true,
                 fill: { metric: metric.name, grouping: grouping(), share: share() }, text: textOf(asGiven() ? "given" : "grouping"),
                 note: needsTests + clustered(), refused: refusedShare(),
                 rows: runs.map(function (run) { return withCounts(run, six(run, places), metric); }) },
               byDivision(places, { slopes: slopesOf(metric), share: share() }));
      },
    },
    costs: {
      ask: function () {
        var own = costs(), valid = own.every(function (cost) { return isFinite(cost) && cost >= 0; });
        var places = division(), prices = priced();
        return decide({ better: "lower", unit: "mean cost of a row", counts: true, text: textOf(asGiven() ? "costs_given" : "costs"),
                 says: "At a cost of " + own[0] + " for a false negative and " + own[1] + " for a false positive" + where(data.partitions[at("ask-groups").value]),
                 note: " For intervals, and to see which runs may be the best, run the code below.", more: " For intervals, run the code below.",
                 fill: { metric: "cost/mean", grouping: grouping(), costs: costData(), share: share() }, refused: valid ? refusedShare() : "A cost is a number of at least 0.",
                 rows: runs.map(function (run) { var n = six(run, places)[0]; return { value: meanCost(n, prices), low: NaN, high: NaN, counts: n }; }) },
               byDivision(places, { slopes: function (six) { return prices.map(function (price) { return price / sum(six); }); }, share: share(), classes: true }));
      },
    },
    threshold: {
      ask: function () {
        var metric = ofCounts()[at("ask-of-threshold").value], place = Number(at("ask-threshold").value), part = data.partitions[0];
        var picked = " A threshold that is selected here looks better than it is on other rows.";
        return decide({ better: metric.better, counts: true, text: textOf("threshold"), note: picked + clustered(), more: picked,
                 says: "Where scores of at least " + data.thresholds[place] + " are called “" + part.shown[0] + "”, by " + metric.title + where(part),
                 fill: { metric: metric.name.replace("binary/", ""), threshold: data.thresholds[place], share: share() }, refused: refusedShare(),
                 rows: runs.map(function (run) {
                   if (!run.scores) { return { value: NaN, low: NaN, high: NaN, counts: null }; }
                   return withCounts(run, moved([sixAt(run.scores, place), sixAt(run.score_squares, place)]), metric);
                 }) },
               { table: "scored", slopes: slopesOf(metric), share: share(), place: function (positive, score) { return placeAt(positive, score, place); } });
      },
    },
    segment: {
      ask: function () {
        var table = data.segments[at("ask-column").value], place = Number(at("ask-value").value), metric = table.metrics[at("ask-of-segment").value];
        var column = data.rows.columns ? data.rows.columns.indexOf(table.column) : -1;
        return decideAsGiven({ better: metric.better, text: "segment", note: "",
                 says: "In “" + table.texts[place] + "” of “" + table.shown + "” (" + table.rows[place] + " rows), by " + metric.title,
                 fill: { metric: metric.name, column: table.column, segment: { written: table.keys[place] } },
                 rows: metric.values.map(function (text) { var n = unpacked(text); return { value: n[3 * place], low: n[3 * place + 1], high: n[3 * place + 2] }; }) },
               column < 0 ? "" : metric.name, function (code) { return code(column) === place; });
      },
    },
  };
  function textOf(name) { return name + (share() === null ? "" : "_at"); }
  function clustered() {
    return runs.some(function (run) { return run.by_rows === false; }) ? " No intervals where rows belong together: these need the rows." : "";
  }
  function order(rows, better) {
    function key(row) { return better === "higher" ? -row.value : better === "lower" ? row.value : Math.abs(row.value); }
    var places = rows.map(function (_, k) { return k; }), known = function (k) { return !isNaN(rows[k].value); };
    places.sort(function (a, b) { return known(b) - known(a) || (known(a) ? key(rows[a]) - key(rows[b]) : 0) || a - b; });
    rows.forEach(function (row) {
      row.rank = isNaN(row.value) ? null : 1 + rows.filter(function (other) { return key(other) < key(row); }).length;
    });
    return places;
  }
  function shownRow(row) { return (shownNumber(row.value, row.low, row.high) + " " + shownInterval(row.low, row.high)).trim(); }

  // -- the answer ----------------------------------------------------------------------------------------------------
  var most = 12;  // rows at first; the chosen run and the other one are always there
  function answer() {
    var knobs = [state.question].concat(Array.from(at("ask").querySelectorAll("select, input")).map(function (knob) { return knob.value + knob.validity.badInput; })).join("|");
    if (state.knobs !== knobs) { state.found = questions[state.question].ask(); state.knobs = knobs; }
    var found = state.found, box = at("ask-table"), said = at("ask-answer");
    if (found.refused) { said.textContent = found.refused; box.replaceChildren(); return; }
    var places = order(found.rows, found.better), best = places[0], own = runs.indexOf(chosen), unit = found.unit ? " " + found.unit : "";
    var text = found.says + ": ";
    if (isNaN(found.rows[best].value)) { text = found.says + ", no run has a value."; }
    else {
      var firsts = places.filter(function (place) { return found.rows[place].rank === 1; }).map(function (place) { return runs[place].name; });
      if (firsts[4]) { firsts.splice(3, firsts.length, firsts.length - 3 + " more"); }
      text += firsts.slice(0, -1).join(", ") + (firsts[1] ? " and " : "") + firsts.slice(-1) + (best === own && !firsts[1] ? ", the chosen run," : "") + (firsts[1] ? " are" : " is") + " first of " + runs.length + ", " + shownRow(found.rows[best]) + unit + ".";
      if (firsts[1] && found.rows[own].rank === 1) { text += " The chosen run, " + chosen.name + ", is one of them."; }
      else if (best !== own) {
        text += " The chosen run, " + chosen.name + ", is " + (found.rows[own].rank === null ? "without a value." : "number " + found.rows[own].rank + ", " + shownRow(found.rows[own]) + ".");
      }
      text += found.note;
    }
    said.textContent = text;
    var held = places.filter(function (place, k) {
      return state.whole || k < most || runs[place] === chosen || runs[place].run === state.other;
    });
    var scale = scaleOf(held.map(function (place) { return found.rows[place]; })), mixed = found.counts && found.rows.some(function (row) { return row.counts && (row.counts[2] || row.counts[5]); });
    var columns = found.counts ? data.formulas.heads.map(function (_, k) { return k; }).filter(function (k) { return mixed || (k !== 2 && k !== 5); }) : [];
    var head = make("tr", {}, ["#", "Run", found.standing ? "Status" : "In the ranking above", "Value", ""].map(function (name, k) { return make(name || scale ? "th" : "td", k === 0 || k === 3 ? { "class": "n" } : {}, [name]); }));
    if (scale) { head.lastChild.className = "scale"; head.lastChild.append(make("span", {}, [shownNumber(scale[0])]), make("span", {}, [shownNumber(scale[1])])); }
    columns.forEach(function (k) { head.append(make("th", { "class": "n", title: capital(data.formulas.parts[k]) }, [capital(data.formulas.heads[k])])); });
    var body = make("tbody", {}, held.map(function (place) {
      var run = runs[place], row = found.rows[place];
      var status = found.standing ? found.standing[place] : "open";
      var line = make("tr", { "class": status + (run === chosen ? " chosen" : ""), "data-run": run.run, "data-value": String(row.value), "data-low": String(row.low), "data-high": String(row.high) }, [
        make("td", { "class": "n" }, [row.rank === null ? "–" : String(row.rank)]),
        make("td", { "class": "run" }, [picker(run)]),
        make("td", {}, found.standing ? [make("span", { "class": "badge " + status }, [data.words[status]])] : [run.standing]),
        make("td", { "class": "n", "data-head": "Value" }, [shownNumber(row.value, row.low, row.high)]),
        make("td", { "class": "i" }, [shownInterval(row.low, row.high)].concat(scale && isFinite(row.value) ? [barOf(row, scale)] : [])),
      ]);
      columns.forEach(function (k) { line.append(make("td", { "class": "n", "data-head": capital(data.formulas.heads[k]) }, [row.counts ? shownCount(row.counts[k]) : "–"])); });
      return line;
    }));
    box.replaceChildren(make("table", { "class": "answer" }, [make("thead", {}, [head]), body]));
    if (held.length < places.length) {
      var more = make("button", { type: "button", "class": "more" }, ["Show all " + places.length + " runs"]);
      more.addEventListener("click", function () { state.whole = true; answer(); });
      box.append(more);
    }
    state.standing = found.standing;
    copies(found);
    mark();
    sieve();
    dispatchEvent(new Event("resize"));  // it may not fit
  }
  function shownCount(n) { return Number.isInteger(n) ? whole(n) : fixed(n, 1); }
  function scaleOf(rows) {
    var ends = [];
    rows.forEach(function (row) { ends.push(row.value, row.low, row.high); });
    ends = ends.filter(isFinite);
    var low = Math.min.apply(null, ends), high = Math.max.apply(null, ends);
    return ends.length && high > low ? [low, high] : null;
  }
  function barOf(row, scale) {
    function x(value) { return (5 + 80 * (value - scale[0]) / (scale[1] - scale[0])).toFixed(2); }
    var parts = isFinite(row.low) ? [make("path", { "class": "reach", d: "M" + x(row.low) + " 6H" + x(row.high) })] : [];
    parts.push(make("circle", { "class": "value", cx: x(row.value), cy: 6, r: 3.5 }));
    return make("svg", { "class": "bar", viewBox: "0 0 90 12", width: 90, height: 12, "aria-hidden": "true", fill: "none", "stroke-width": 2 }, parts);
  }
  function copies(found) {
    var text = data.texts[found.text];
    ["python", "command"].forEach(function (kind) {
      var write = kind === "python" ? literal.python : function (value) { return typeof value === "object" ? literal.json(value) : literal.shell(value); };
      var filled = text[kind].replace(/⟦(\w+)⟧/g, function (_, name) { return write(found.fill[name]); });
      at("ask-" + kind).value = filled;
      at("ask-" + kind).rows = Math.min(24, filled.split("\n").length + 1);
      at("ask-" + kind + "-part").hidden = !filled;
    });
  }
  function copy(event) {
    var area = at(event.target.getAttribute("data-copies")), say = event.target.nextElementSibling;
    area.focus();
    area.select();
    say.textContent = "The text is selected: copy it with Ctrl+C.";
    try { navigator.clipboard.writeText(area.value).then(function () { say.textContent = "Copied."; }, function () {}); } catch (error) { /* not allowed in a frame */ }
  }

  // -- any run against the chosen one --------------------------------------------------------------------------------
  function picker(run) {
    var button = make("button", { type: "button", "class": "pick", "aria-pressed": "false" }, [run.short]);
    if (run !== chosen) { button.title = "Compare with the chosen run"; }
    button.addEventListener("click", function () { pick(run.run); });
    return button;
  }
  function pick(number) {
    if (number === chosen.run || !byNumber[number]) { return; }
    state.held = !(state.held && state.other === number);  // in the figures; the same run once more lets go
    state.other = number;
    if (at("pair")) { at("pair-with").value = runs.indexOf(byNumber[number]); }
    answer();
    against();
    at("pair-live").textContent = byNumber[number].name + " is set against " + chosen.name + ", the chosen run.";
    at("pair-bar").hidden = !at("pair");
  }
  function mark() {
    document.body.classList.toggle("comparing", Boolean(state.held));
    document.querySelectorAll("[data-run]").forEach(function (element) {
      var number = Number(element.getAttribute("data-run"));
      element.classList.toggle("picked", number === state.other);
      element.classList.toggle("ours", number === chosen.run);
      element.querySelectorAll("button.pick").forEach(function (button) { button.setAttribute("aria-pressed", String(number === state.other)); });
    });
  }
  function against() {
    var run = byNumber[state.other], found = run && run.against, part = at("pair");
    if (!run || !part) { return; }
    document.querySelectorAll(".rival").forEach(function (span) { span.textContent = run.name; });
    var pairs = Array.from(document.querySelectorAll("[data-pair]"));
    pairs.forEach(function (pair) { pair.hidden = Number(pair.getAttribute("data-pair")) !== run.run; });
    if (pairs.length) { at("pair-no-rows").hidden = pairs.some(function (pair) { return !pair.hidden; }); }
    var sentences = at("pair-sentences"), table = at("pair-table");
    if (sentences && found) {
      sentences.replaceChildren.apply(sentences, found.sentences.map(function (text) { return make("p", {}, [text]); }));
      table.hidden = at("pair-note").hidden = !found.rows.length;
      part.classList.toggle("unpaired", !found.paired);
      at("pair-more").textContent = found.more ? " " + found.more : "";
      table.querySelector("tbody").replaceChildren.apply(table.querySelector("tbody"), found.rows.map(function (row) {
        var cells = [make("td", { "class": "label" }, [row[0]]), make("td", {}, [row[1]])];
        [2, 3, 4, 5].forEach(function (k) { cells.push(make("td", { "class": k > 3 ? "n paired" : "n", "data-sort": row[k].replace("−", "-") }, [row[k]])); });
        cells.push(make("td", { "class": "n", "data-sort": row[7] }, [row[6]]), make("td", {}, [make("span", { "class": "badge " + row[8] }, [row[9]])]));
        return make("tr", {}, cells);
      }));
    }
    var drawn = charts(run), keys = [["one", chosen], ["two", run]].map(function (key) {
      return make("span", { "class": "key" }, [make("svg", { width: 26, height: 8, "aria-hidden": "true" }, [make("path", { "class": "line " + key[0], d: "M0 4H26" })]), " " + key[1].name]);
    });
    at("pair-charts").replaceChildren.apply(at("pair-charts"), drawn.length ? [make("p", { "class": "keys" }, keys)].concat(drawn) : []);
  }
  function charts(run) {
    var out = [], both = [[chosen, "one"], [run, "two"]], group = data.partitions.length ? data.partitions[0].shown[0] : "";
    function lines(name, x, y) {
      return both.filter(function (pair) { return pair[0][name] && pair[0][name].length; }).map(function (pair) {
        return { kind: pair[1], points: pair[0][name][x].map(function (_, k) { return [pair[0][name][x][k] / 1000, pair[0][name][y][k] / 1000]; }) };
      });
    }
    if (chosen.curve && run.curve) {
      out.push(chart("ROC of “" + group + "”", "False positive rate", "Recall", lines("curve", 0, 1), [0, 1], true));
      out.push(chart("Precision and recall of “" + group + "”", "Recall", "Precision", lines("curve", 1, 2), [0, 1], false));
    }
    if (chosen.reliability && run.reliability) { out.push(chart("Reliability", "Score", "Came true", lines("reliability", 0, 1), [0, 1], true)); }
    if (chosen.scores && run.scores) {
      var own = priced(), cost = both.map(function (pair) {
        return { kind: pair[1], points: data.thresholds.map(function (t, place) { return [t, meanCost(sixAt(pair[0].scores, place), own)]; }) };
      });
      var top = Math.max.apply(null, cost.map(function (line) { return Math.max.apply(null, line.points.map(function (p) { return p[1]; })); }));
      var ten = Math.pow(10, Math.floor(Math.log10(top || 1)));
      top = [1, 2, 4, 6, 8, 10].find(function (k) { return k * ten >= top; }) * ten;
      out.push(chart("Cost (FN " + own[1] + ", FP " + own[3] + ")", "Threshold", "Mean cost of a row", cost, [0, top], false));
    }
    return out;
  }
  function chart(title, across, up, lines, range, diagonal) {
    var left = 46, top = 8, wide = 222, high = 190, parts = [];
    function x(value) { return (left + wide * value).toFixed(1); }
    function y(value) { return (top + high * (1 - (value - range[0]) / (range[1] - range[0]))).toFixed(1); }
    [0, 0.5, 1].forEach(function (share) {
      var value = range[0] + share * (range[1] - range[0]);
      parts.push(make("path", { "class": "grid", d: "M" + x(0) + " " + y(value) + "H" + x(1) + "M" + x(share) + " " + y(range[0]) + "V" + y(range[1]) }));
      parts.push(make("text", { x: left - 6, y: Number(y(value)) + 4, "text-anchor": "end" }, [String(Number(value.toPrecision(2)))]));
      parts.push(make("text", { x: x(share), y: top + high + 15, "text-anchor": "middle" }, [String(share)]));
    });
    if (diagonal) { parts.push(make("path", { "class": "zero", d: "M" + x(0) + " " + y(range[0]) + "L" + x(1) + " " + y(range[1]) })); }
    lines.forEach(function (line) {
      parts.push(make("path", { "class": "line " + line.kind, d: "M" + line.points.map(function (p) { return x(p[0]) + " " + y(p[1]); }).join("L") }));
    });
    parts.push(make("text", { x: left + wide / 2, y: top + high + 32, "text-anchor": "middle" }, [across]));
    parts.push(make("text", { x: -(top + high / 2), y: 11, transform: "rotate(-90)", "text-anchor": "middle" }, [up]));
    return make("figure", { "class": "chart" }, [make("figcaption", {}, [title]),
      make("svg", { viewBox: "0 0 280 240", width: 280, height: 240, role: "img", "aria-label": title }, parts)]);
  }

  // -- filter --------------------------------------------------------------------------------------------------------
  function sieve() {
    var box = at("find");
    if (!box) { return; }
    var wanted = at("find-name").value.trim().toLowerCase(), tied = at("find-tied").checked, held = 0;
    var kept = new Set(runs.filter(function (run) {
      return run.key.toLowerCase().indexOf(wanted) >= 0 && (!tied || run.tied);
    }).map(function (run) { held += 1; return run.run; }));
    document.querySelectorAll("tr[data-run]").forEach(function (row) {
      var number = Number(row.getAttribute("data-run"));
      var run = byNumber[number], asked = row.closest("#ask-table") && state.standing;
      row.hidden = run && asked && tied  // by the question that is asked
        ? run.key.toLowerCase().indexOf(wanted) < 0 || asked[runs.indexOf(run)].indexOf("behind") >= 0
        : run ? !kept.has(number) : Boolean(wanted || tied);
    });
    document.querySelectorAll("button.unfold").forEach(function (button) { if (wanted) { button.click(); } });
    at("find-live").textContent = wanted || tied ? held + " of " + runs.length + " runs" : "";
  }

  // -- start ---------------------------------------------------------------------------------------------------------
  function group() {
    var part = data.partitions[at("ask-groups").value];
    [0, 1].forEach(function (k) {
      var select = at("ask-mode-" + k), hybrid = Array.isArray(part.modes[k]);
      select.previousElementSibling.textContent = "Inside “" + part.shown[k] + "”";
      select.replaceChildren.apply(select, (hybrid ? ["given"] : []).concat(["relaxed", "strict"]).map(function (mode) {
        return make("option", { value: mode }, [mode === "given" ? "pairs as evaluated" : mode === "relaxed" ? "any class of the group is right" : "only the same class is right"]);
      }));
      select.value = hybrid ? "given" : part.modes[k];
      select.parentNode.hidden = alone(part, k);
    });
  }
  function column() {
    var table = data.segments[at("ask-column").value];
    fill(at("ask-value"), table.texts.map(function (text, k) { return text + " (" + table.rows[k] + ")"; }), true);
    fill(at("ask-of-segment"), table.metrics.map(function (metric) { return metric.title; }));
  }
  function show() {
    state.question = document.querySelector("input[name=ask]:checked").value;
    document.querySelectorAll("#ask [data-for]").forEach(function (part) {
      part.hidden = part.getAttribute("data-for").split(" ").indexOf(state.question) < 0;
    });
    answer();
  }
  var there = { metric: true, groups: data.partitions.length > 0, costs: data.partitions.length > 0,
                threshold: data.thresholds.length > 0, segment: data.segments.length > 0 };
  Object.keys(there).forEach(function (name) { at("ask-is-" + name).parentNode.hidden = !there[name]; });
  fill(at("ask-metric"), data.metrics.map(function (metric) { return metric.title; }));
  at("ask-metric").value = data.opens;
  if (there.groups) {
    fill(at("ask-groups"), data.partitions.map(function (part) { return part.title; }));
    group();
    ["ask-of-groups", "ask-of-threshold"].forEach(function (id) {
      fill(at(id), ofCounts().map(function (metric) { return metric.title; }));
      at(id).value = Math.max(0, ofCounts().findIndex(function (metric) { return metric.name === data.criterion; }));
    });
    at("ask-groups").addEventListener("change", function () { group(); answer(); });
  }
  if (there.threshold) {
    at("ask-threshold").max = data.thresholds.length - 1;
    at("ask-threshold").value = data.thresholds.reduce(function (best, t, k) { return Math.abs(t - 0.5) < Math.abs(data.thresholds[best] - 0.5) ? k : best; }, 0);
    var told = function () {
      at("ask-threshold-value").textContent = data.thresholds[at("ask-threshold").value];
      at("ask-threshold").setAttribute("aria-valuetext", data.thresholds[at("ask-threshold").value]);
    };
    at("ask-threshold").addEventListener("input", told);
    told();
  }
  if (there.segment) {
    fill(at("ask-column"), data.segments.map(function (table) { return table.shown; }), true);
    column();
    at("ask-column").addEventListener("change", function () { column(); answer(); });
  }
  document.querySelectorAll("input[name=ask]").forEach(function (radio) { radio.addEventListener("change", show); });
  document.querySelectorAll("#ask select, #ask .knobs input").forEach(function (knob) {
    if (knob.id !== "ask-groups" && knob.id !== "ask-column") { knob.addEventListener(knob.tagName === "SELECT" ? "change" : "input", answer); }
  });
  ["ask-fn", "ask-fp", "ask-im"].forEach(function (id) { at(id).addEventListener("input", against); });
  document.querySelectorAll("button[data-copies]").forEach(function (button) { button.addEventListener("click", copy); });
  at("ask").addEventListener("submit", function (event) { event.preventDefault(); });
  document.querySelectorAll("tr[data-run] td.run").forEach(function (cell) {  // names become buttons
    var run = byNumber[cell.parentNode.getAttribute("data-run")];
    if (!run || run === chosen) { return; }
    var button = picker(run);
    button.textContent = cell.firstChild.textContent;
    cell.replaceChild(button, cell.firstChild);
  });
  if (runs.length > 1 && at("pair")) {
    fill(at("pair-with"), runs.map(function (run) { return run.name; }));
    at("pair-with").options[runs.indexOf(chosen)].disabled = true;
    at("pair-with").addEventListener("change", function () { pick(runs[at("pair-with").value].run); at("pair-bar").hidden = true; });
    at("pair-knob").hidden = at("hint").hidden = false;
    at("pair-show").addEventListener("click", function () { at("pair").scrollIntoView(); at("pair-with").focus({ preventScroll: true }); });
    at("pair-close").addEventListener("click", function () { at("pair-bar").hidden = true; });
    state.other = Number(at("pair").getAttribute("data-rival") || state.other);
    at("pair-with").value = runs.indexOf(byNumber[state.other]);
    against();
  }
  document.addEventListener("click", function (event) {
    var found = event.target.closest("button, a, input, select, th") ? null : event.target.closest("[data-run]");
    if (found && !String(getSelection())) { pick(Number(found.getAttribute("data-run"))); }
  });
  if (runs.length >= 8) {
    at("find").hidden = false;
    at("find-name").addEventListener("input", sieve);
    at("find-tied").addEventListener("change", sieve);
  }
  at("ask").hidden = at("to-ask").hidden = runs.length < 2 && !there.groups;
  // Who of many may be the best takes a moment: the page is drawn before.
  if (runs.length > 12) { setTimeout(show, 50); } else { show(); }
