"""The page's sections, in reading order; each gives its markup, or says what it would need. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windtunnel.cost import format_money, format_node_hours
from windtunnel.records.trial import FINAL, Verdict
from windtunnel.report import facts, measurements, tables
from windtunnel.report.collect import Collected, Missing
from windtunnel.report.compare import Ranking
from windtunnel.report.figures import Figure
from windtunnel.report.markup import Html, join, tag
from windtunnel.report.wording import (
    CRITERION_NAMES,
    describe_against_base_rate,
    describe_certainty,
    describe_check,
    describe_decision,
    format_loss,
    format_number,
    format_percent,
)


@dataclass(frozen=True)
class Page:
    """All that sections are drawn from."""

    title: str
    collected: Collected
    ranking: Ranking
    figures: dict[str, Figure]
    currency: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of the page that its navigation names."""

    ident: str
    title: str
    body: Html


def build_sections(page: Page) -> list[Section]:
    """Sections that have something to show, or whose absence the reader should know of."""
    makers: tuple[tuple[str, str, Callable[[Page], Html]], ...] = (
        ("decision", "Decision", _decision),
        ("ranking-section", "Ranking", _ranking),
        ("curves", "Loss", _curves),
        ("speed", "Throughput", _throughput),
        ("latency-section", "Latency", _latency),
        ("failures", "Failed and pruned", _failures),
        ("cost", "Cost", _cost),
        ("cluster", "Cluster", _cluster),
        ("inputs", "Models and data", _inputs),
        ("stages", "Stages", _stages),
        ("provenance", "Provenance", _provenance),
    )
    return [Section(ident, title, make(page)) for ident, title, make in makers]


def _decision(page: Page) -> Html:
    certainty = describe_certainty(page.ranking)
    cautions = [*_cautions(page.ranking), *page.warnings]
    missing = _group_missing(page.collected.missing)
    return join(
        [
            tag("p", describe_decision(page.ranking), class_="decision"),
            tag("p", certainty, class_="certainty") if certainty else "",
            _facts(page),
            _notice("Mind", cautions, "warn"),
            _notice("Not on this page", missing, "info"),
        ]
    )


def _group_missing(missing: Sequence[Missing]) -> list[str]:
    """A line per reason: `checkpoints, latency: not passed to the report`."""
    reasons = dict.fromkeys(item.reason for item in missing)
    return [f"{', '.join(item.what for item in missing if item.reason == reason)}: {reason}" for reason in reasons]


def _cautions(ranking: Ranking) -> list[str]:
    cautions = []
    open_trials = sum(row.verdict not in FINAL for row in ranking.rows)
    if open_trials:
        cautions.append(
            f"{open_trials} of {len(ranking.rows)} trials have no final verdict yet: the ranking may still change"
        )
    if ranking.criterion == "training_loss":
        cautions.append(
            "no program told a validation_loss: trials are ranked by the last training loss that each told"
        )
    for row in ranking.rows:
        notes = row.outcome.notes if row.outcome else ()
        cautions += [f"{row.label}: {note}" for note in (*notes, *row.utilization.alarms)]
    if ranking.recommendation:
        for row in ranking.recommendation.chosen.rows:
            if row.check is not None and not row.check.verified:
                cautions.append(f"the final checkpoint of {row.label} did not verify: {row.check.reason}")
        cautions += filter(None, [describe_against_base_rate(ranking.recommendation.chosen.rows[0])])
    return cautions


def _facts(page: Page) -> Html:
    recommendation = page.ranking.recommendation
    completed = sum(row.completed for row in page.ranking.rows)
    items = [("Trials completed", f"{completed} of {len(page.ranking.rows)}")]
    if recommendation:
        row = recommendation.chosen.rows[0]
        items += [
            ("Validation loss", format_loss(row.validation_loss)),
            ("Accuracy", format_percent(row.accuracy)),
            ("Samples/s", format_number(row.samples_per_s)),
            ("p99 latency, us", format_number(row.latency.p99_us if row.latency else None)),
            ("Node-hours", format_node_hours(row.cost.node_hours)),
            *([("Cost", format_money(row.cost.money, row.cost.currency))] if row.cost.money is not None else []),
            ("Checkpoint", describe_check(row)),
        ]
    return tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in items], class_="tiles")


def _ranking(page: Page) -> Html:
    ranking = page.ranking
    if not ranking.rows:
        return _absent("No trial is known: neither the plan nor the sweep could be read.")
    verdicts = sorted({row.verdict for row in ranking.rows})
    options = [tag("option", "all verdicts", value=""), *[tag("option", v.lower(), value=v) for v in verdicts]]
    controls = tag(
        "div",
        tag("label", "Filter ", tag("input", id="filter-text", type="search", placeholder="name, verdict, …")),
        tag("label", "Verdict ", tag("select", *options, id="filter-verdict")),
        tag("span", "", id="filter-count", role="status", aria_live="polite"),
        class_="controls",
    )
    by = tag("p", f"Ranked by {CRITERION_NAMES[ranking.criterion]}. Press a heading to sort.", class_="note")
    repeats = any(candidate.repeats > 1 for candidate in ranking.candidates)
    more = [tag("h3", "By configuration"), tables.render_configurations(ranking)] if repeats else []
    return join([by, controls, tables.render_ranking(ranking), *more])


def _curves(page: Page) -> Html:
    note = "Means over the steps between two records. Time leaves out waiting in the queue."
    drawn = _figures(page, "loss-by-step", "loss-by-time")
    curves = [tag("p", note, class_="note"), drawn] if drawn else [_absent("No trial has recorded a step.")]
    scored = any(row.outcome for row in page.ranking.rows)
    return join([*curves, measurements.render_evaluations(page.ranking.rows) if scored else ""])


def _throughput(page: Page) -> Html:
    note = "Bars are the global batch over the median step time; whiskers reach to the 90th percentile of step times."
    drawn = _figures(page, "throughput")
    if not drawn:
        return _absent("No trial has completed.")
    rows = page.ranking.rows
    drawers = (
        measurements.render_throughput,
        measurements.render_utilization,
        measurements.render_phases,
        measurements.render_memory,
    )
    return join([tag("p", note, class_="note"), drawn, *[draw(rows) for draw in drawers]])


def _latency(page: Page) -> Html:
    latency = page.collected.latency
    if latency is None:
        return _absent("Latency has not been measured.")
    labels = {row.trial_id: row.label for row in page.ranking.rows}
    skipped = [f"{labels.get(trial, trial)}: {reason}" for trial, reason in latency.skipped.items()]
    known = [row for row in page.ranking.rows if row.latency]
    body = (
        [_figures(page, "latency"), measurements.render_latency(known)]
        if known
        else [_absent("No model was measured.")]
    )
    return join([*body, _notice("Left out", skipped, "info")])


def _failures(page: Page) -> Html:
    quiet = {Verdict.COMPLETED.value, Verdict.PRUNED.value}
    failed = [row for row in page.ranking.rows if row.verdict not in quiet]
    stopped = [row for row in page.ranking.rows if row.verdict == Verdict.PRUNED.value]
    lost = [
        (row, end)
        for row in page.ranking.rows
        if row.completed
        for end in page.collected.attempts.get(row.trial_id, ())
        if end.verdict != Verdict.COMPLETED
    ]
    pruned = page.collected.plan.pruned if page.collected.plan else ()
    return join(
        [
            tables.render_failures(failed) if failed else tag("p", "Every trial that ran completed."),
            tables.render_failures(stopped) if stopped else "",
            tables.render_lost_attempts(lost) if lost else "",
            tables.render_pruned(pruned) if pruned else tag("p", "No combination was pruned by the plan."),
        ]
    )


def _cost(page: Page) -> Html:
    rows = [row for row in page.ranking.rows if row.attempts or row.cost.node_hours]
    goodputs = {row.label: page.collected.goodputs.get(row.trial_id) for row in rows}
    timed = {label: goodput for label, goodput in goodputs.items() if goodput is not None and goodput.wall_s > 0}
    if not rows:
        return _absent("Nothing has run, so nothing was used.")
    return join([tables.render_cost(rows, page.currency), measurements.render_goodputs(timed) if timed else ""])


def _cluster(page: Page) -> Html:
    found = page.collected
    return join(
        [
            facts.render_nodes(found.topology) if found.topology else _absent("The topology was not read."),
            facts.render_switches(found.topology) if found.topology else "",
            facts.render_collectives(found.collectives)
            if found.collectives
            else _absent("Collectives were not timed."),
            facts.render_device(found.device) if found.device else _absent("The device's rates were not measured."),
        ]
    )


def _inputs(page: Page) -> Html:
    found = page.collected
    return join(
        [
            facts.render_models(found.models) if found.models else _absent("Models were not traced."),
            facts.render_data(found.data) if found.data else _absent("The data's manifest was not found."),
        ]
    )


def _stages(page: Page) -> Html:
    stages = page.collected.stages
    return facts.render_stages(stages) if stages else _absent("No benchmark table of the workflow was given.")


def _provenance(page: Page) -> Html:
    found = page.collected
    identity = facts.render_identity(found.plan) if found.plan else _absent("The plan could not be read.")
    return join([identity, facts.render_stamps(found.stamps)])


def _figures(page: Page, *idents: str) -> Html:
    drawn = [
        tag(
            "figure",
            tag("figcaption", figure.title),
            tag("div", class_="plot", data_figure=figure.ident, role="img", aria_label=figure.description),
        )
        for ident in idents
        if (figure := page.figures.get(ident))
    ]
    return tag("div", *drawn, class_="figures") if drawn else Html("")


def _notice(title: str, lines: Sequence[str], tone: str) -> Html:
    if not lines:
        return Html("")
    return tag(
        "aside", tag("strong", title), tag("ul", *[tag("li", line) for line in lines]), class_=f"notice {tone}"
    )


def _absent(text: str) -> Html:
    return tag("p", text, class_="absent")
