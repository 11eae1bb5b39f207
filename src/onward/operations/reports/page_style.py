"""How a report looks: the page's colours, light and dark, and its palette for lines."""

from __future__ import annotations

_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b35a93", "#b8860b", "#2a8fc9", "#6b4fbb", "#555b66")
_DARK = ("#4ba3dd", "#f08a3c", "#2cc49a", "#dd8bc0", "#e3b340", "#7cc7f0", "#a992f0", "#aab2bf")


def _palette(colours: tuple[str, ...]) -> str:
    return "".join(f"--c{number}:{colour};" for number, colour in enumerate(colours))


_LINES = "".join(f".line.c{n}{{stroke:var(--c{n})}}.band.c{n},.dot.c{n}{{fill:var(--c{n})}}" for n in range(len(_LIGHT)))

STYLE = f"""
:root{{color-scheme:light dark;--page:#fff;--text:#1a1d23;--muted:#59606d;--line:#e3e6eb;--sunken:#f6f7f9;--good:#16713f;--bad:#bd2a1e;
--busy:#1f5fd6;--wait:#b8bec8;--stall:#8a5a00;{_palette(_LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{--page:#111318;--text:#e5e8ed;--muted:#a3abb8;--line:#282c34;--sunken:#16191e;--good:#5fca8d;
--bad:#ff8a7d;--busy:#79a9ff;--wait:#4a515d;--stall:#e2b04a;{_palette(_DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;padding:24px 16px 48px;max-width:1200px;background:var(--page);color:var(--text);
font:13px/1.5 system-ui,"Segoe UI",Roboto,"Liberation Sans",sans-serif;font-variant-numeric:tabular-nums}}
h1{{margin:0;font-size:20px;line-height:28px;overflow-wrap:anywhere}}
h2{{margin:32px 0 8px;font-size:15px}}
h3{{margin:16px 0 4px;font-size:13px}}
header p,small,figcaption small{{color:var(--muted);font-weight:400}}
header p{{margin:0}}
.wide{{overflow-x:auto}}
table{{width:100%;border-collapse:collapse}}
th,td{{padding:6px 16px 6px 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:break-word}}
.legs td:last-child,.facts td:last-child,.why{{width:100%;min-width:12em}}
.kept,.state,td code{{white-space:nowrap}}
.why{{min-width:20em}}
thead th{{color:var(--muted);font-size:12px;font-weight:400;white-space:nowrap}}
tbody th{{font-weight:500;min-width:9em}}
.legs tbody th{{min-width:0}}
tr.differs td{{font-weight:600}}
code,pre{{font:12px/1.5 ui-monospace,Menlo,Consolas,"Liberation Mono",monospace}}
pre{{margin:6px 0 0;padding:8px;background:var(--sunken);border-radius:6px;overflow-x:auto;white-space:pre-wrap}}
.state.finished{{color:var(--good)}}.state.failed{{color:var(--bad)}}.state.running{{color:var(--busy)}}
figure{{margin:0 0 16px;min-width:0}}
figcaption{{font-weight:600;overflow-wrap:anywhere}}
figure ul{{margin:4px 0 0;padding:0;list-style:none;font-size:12px;color:var(--muted)}}
figure ul b{{color:var(--text);font-weight:500}}
.grid-of-charts{{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr));gap:16px 32px}}
svg{{display:block;width:100%;height:auto}}
svg.key{{display:inline-block;width:24px;height:8px;vertical-align:middle}}
.grid{{stroke:var(--line)}}
.tick{{fill:var(--muted);font-size:11px}}
.line{{fill:none;stroke-width:1.5;stroke-linejoin:round}}
.band{{opacity:.18}}
{_LINES}
.bar .queue,.bar .prepare,.bar .sync{{fill:var(--wait)}}
.bar .leg{{fill:var(--busy)}}.bar .leg.done,.bar .leg.time_limit,.bar .leg.again{{fill:var(--good)}}
.bar .leg.crashed,.bar .leg.out_of_memory,.bar .leg.node_lost,.bar .leg.lost,.bar .leg.stalled{{fill:var(--bad)}}
.bar .leg.preempted,.bar .leg.cancelled{{fill:var(--muted)}}
.bar .stall{{fill:var(--stall)}}
.mark{{stroke:var(--muted)}}.mark.checkpoint{{stroke:var(--page)}}.mark.missed,.mark.warning{{stroke:var(--stall);stroke-width:2}}
@media print{{body{{max-width:none}}section,figure{{break-inside:avoid}}}}
"""
