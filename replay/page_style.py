"""The looks of a report: one style sheet, light and dark, on screen and on paper; no font or image from elsewhere."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f6f6f3; --sheet: #ffffff; --ink: #1d2127; --quiet: #5e6772; --line: #e2e3df; --tint: #f1f2ee;
  --good: #11713f; --good-tint: #e2f4e9; --bad: #b3261e; --bad-tint: #fde8e6; --odd: #8a5a00; --odd-tint: #fdf1d8;
  --link: #2457c5; --link-tint: #e8eefc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #111418; --sheet: #191d23; --ink: #e4e7eb; --quiet: #98a2ae; --line: #2b313a; --tint: #20252c;
    --good: #66d19a; --good-tint: #12301f; --bad: #ff8a80; --bad-tint: #3a1a19; --odd: #f0c060; --odd-tint: #35290f;
    --link: #8fb0ff; --link-tint: #1b2745;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.02em; }
h2 { margin: 2.75rem 0 .9rem; font-size: 1.2rem; letter-spacing: -.01em; }
h2 small { color: var(--quiet); font-weight: 400; font-size: .85em; }
p { margin: .4rem 0; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre, .mono {
  font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
code, .mono { font-size: .86em; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
.verdict {
  display: flex; gap: .9rem; align-items: flex-start; margin: 1.4rem 0; padding: 1rem 1.2rem; border-radius: 12px;
  background: var(--good-tint); color: var(--good);
}
.verdict.bad { background: var(--bad-tint); color: var(--bad); }
.verdict .sign { font-size: 1.5rem; line-height: 1.2; font-weight: 700; }
.verdict strong { display: block; font-size: 1.05rem; }
.verdict p { margin: 0; color: var(--ink); opacity: .85; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .75rem; margin: 1.2rem 0; }
.card { background: var(--sheet); border: 1px solid var(--line); border-radius: 12px; padding: .8rem 1rem; }
.card b { display: block; font-size: 1.6rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: .86rem; }
.card.good b { color: var(--good); } .card.bad b { color: var(--bad); } .card.odd b { color: var(--odd); }
.sheet { background: var(--sheet); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .92rem; }
th { text-align: left; font-weight: 600; color: var(--quiet); font-size: .8rem; }
th, td { padding: .5rem .9rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child > td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.when { white-space: nowrap; color: var(--quiet); font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .8rem 0; font-size: .92rem; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
details { background: var(--sheet); border: 1px solid var(--line); border-radius: 12px; margin: .6rem 0; }
summary { cursor: pointer; padding: .7rem 1rem; list-style: none; display: flex; flex-wrap: wrap; gap: .3rem .7rem;
  align-items: baseline; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "\\25B8"; color: var(--quiet); width: .8em; }
details[open] > summary::before { content: "\\25BE"; }
summary .grow { flex: 1 1 14rem; min-width: 0; overflow-wrap: anywhere; font-weight: 550; }
details > div { padding: .1rem 1rem 1rem; border-top: 1px solid var(--line); }
.chip { display: inline-block; padding: .05rem .55rem; border-radius: 99px; font-size: .8rem; font-weight: 600;
  background: var(--tint); color: var(--quiet); white-space: nowrap; }
.chip.good { background: var(--good-tint); color: var(--good); }
.chip.bad { background: var(--bad-tint); color: var(--bad); }
.chip.odd { background: var(--odd-tint); color: var(--odd); }
.chip.link { background: var(--link-tint); color: var(--link); }
.path { margin: 1rem 0 .35rem; display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap; }
.plus { color: var(--good); } .minus { color: var(--bad); }
pre { margin: 0; padding: .6rem 0; background: var(--tint); border: 1px solid var(--line); border-radius: 8px;
  overflow-x: auto; font-size: .82rem; line-height: 1.5; tab-size: 4; }
pre.output { padding: .6rem .9rem; max-height: 22rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
pre span { display: block; padding: 0 .9rem; min-width: max-content; white-space: pre; }
pre .add { background: var(--good-tint); color: var(--good); }
pre .cut { background: var(--bad-tint); color: var(--bad); }
pre .at, pre .head { color: var(--quiet); }
footer {
  margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--quiet); font-size: .86rem;
}
@media (max-width: 40rem) { main { padding-top: 1.5rem; } th, td { padding: .45rem .6rem; } }
@media print {
  body { background: #fff; font-size: 11px; } main { max-width: none; padding: 0; }
  details, .sheet, .card { break-inside: avoid; } pre { white-space: pre-wrap; }
}
"""
