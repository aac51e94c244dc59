"""The report as one HTML file: its own style, script and figures inside, nothing to load from anywhere. Pure."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files

from plotly.offline import get_plotlyjs

from windtunnel.report.figures import Figure
from windtunnel.report.markup import Html, join, tag
from windtunnel.report.sections import Page, Section, build_sections
from windtunnel.report.wording import describe_state


def render_page(page: Page, provenance: Mapping[str, str]) -> str:
    """The whole document. A policy in its head forbids loading anything and running any script but its own."""
    sections = build_sections(page)
    script, style = _asset("page.js"), _asset("page.css")
    scripts = [get_plotlyjs(), script] if page.figures else [script]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{page.title} – Windtunnel"),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the decision", href="#decision", class_="skip"),
        _header(page),
        _navigation(sections),
        tag("main", *[_render_section(section) for section in sections]),
        _footer(provenance),
        tag("script", Html(embed_json(page.figures)), type="application/json", id="figures"),
        *[tag("script", Html(text)) for text in scripts],
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def embed_json(figures: Mapping[str, Figure]) -> str:
    """Figures as JSON that cannot end the script element it stands in."""
    plain = {ident: {"data": asdict(figure)["data"], "layout": figure.layout} for ident, figure in figures.items()}
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Sequence[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Plotly styles its own nodes and saves images through blobs.
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _asset(name: str) -> str:
    return files("windtunnel.report").joinpath(name).read_text(encoding="utf-8")


def _header(page: Page) -> Html:
    partial = page.collected.sweep is None or any(not row.completed for row in page.ranking.rows)
    return tag(
        "header",
        tag("div", tag("p", "Windtunnel report", class_="brand"), tag("h1", page.title)),
        tag("span", describe_state(page.ranking), class_=f"chip {'warn' if partial else 'good'}"),
        tag("button", "Dark or light", id="theme", type="button"),
    )


def _navigation(sections: Sequence[Section]) -> Html:
    links = [tag("li", tag("a", section.title, href=f"#{section.ident}")) for section in sections]
    return tag("nav", tag("ul", *links), aria_label="Sections")


def _render_section(section: Section) -> Html:
    heading = f"{section.ident}-heading"
    return tag(
        "section",
        tag("h2", section.title, id=heading),
        section.body,
        id=section.ident,
        aria_labelledby=heading,
        class_="card",
    )


def _footer(provenance: Mapping[str, str]) -> Html:
    made = " · ".join(f"{key} {value}" for key, value in provenance.items())
    script = tag("noscript", "Tables are complete without scripts; figures, sorting and filters need them.")
    return tag("footer", join([tag("p", f"This page: {made}"), script]))
