/** The page's style. Colours carry no meaning alone: every state is also a word. */
export const style: string = /* css */ `
:root {
  color-scheme: light dark;
  --back: #f3f5f8; --panel: #fff; --line: #dde3ea; --track: #e9edf2; --ink: #14202e; --soft: #546273; --link: #0b5cad;
  --open: #14774a; --open-soft: #d8f0e3; --shut: #b3261e; --shut-soft: #fbe1df; --warn: #8a5a00; --warn-soft: #fbeccb; --rest: #a9b4c0;
  --dispatched: #2f9e6e; --rejected: #d9722a; --evicted: #b83b5e;
  --c0: #3b7dd8; --c1: #2f9e8f; --c2: #8b5fc7; --c3: #d9812a; --c4: #c4517f; --c5: #5b9a3a; --c6: #4b6cb7; --c7: #b08a1e;
  --shadow: 0 1px 2px rgb(20 32 46 / 6%), 0 4px 16px rgb(20 32 46 / 5%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0d1217; --panel: #151c24; --line: #26313d; --track: #222c37; --ink: #e7edf3; --soft: #9dabb9; --link: #7fb8f5;
    --open: #58d39b; --open-soft: #12372a; --shut: #ff8f86; --shut-soft: #43201f; --warn: #f0c060; --warn-soft: #3d2f10; --rest: #5b6875;
    --dispatched: #3fb584; --rejected: #e88a45; --evicted: #dd6a8b;
    --c0: #5d9bf0; --c1: #43b8a8; --c2: #a680e0; --c3: #e89a4c; --c4: #dd7099; --c5: #79b858; --c6: #7890d8; --c7: #cda73c;
    --shadow: none;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
header, main, footer { max-width: 1180px; margin: 0 auto; padding: 0 20px; }
header { display: flex; align-items: center; gap: 16px; padding-top: 18px; padding-bottom: 14px; }
h1 { margin: 0; font-size: 20px; letter-spacing: -.01em; display: flex; align-items: center; gap: 8px; }
.light, .aside { color: var(--soft); font-weight: 400; }
.aside { font-size: 13px; margin-left: 6px; letter-spacing: 0; }
.mark { width: 22px; height: 22px; fill: none; stroke: var(--c1); stroke-width: 2.4; stroke-linecap: round; }
h2 { font-size: 15px; margin: 0 0 10px; letter-spacing: -.005em; }
h3 { font-size: 15px; margin: 0; }
p, dl, ol, ul { margin: 0; padding: 0; list-style: none; }
dd { margin: 0; }
a { color: var(--link); }
.status { margin-left: auto; display: flex; align-items: center; gap: 7px; color: var(--soft); font-size: 13px; }
.dot { width: 9px; height: 9px; border-radius: 50%; background: var(--rest); }
.dot.live { background: var(--dispatched); }
.dot.lost { background: var(--shut); }
button { font: inherit; font-size: 13px; font-weight: 600; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 6px 14px; min-width: 88px; cursor: pointer; }
button:hover { border-color: var(--soft); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -999px; top: 6px; background: var(--panel); padding: 8px 14px; border-radius: 8px; }
.skip:focus { left: 12px; z-index: 1; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
[hidden] { display: none !important; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 14px; padding: 16px 18px; box-shadow: var(--shadow); }
section { margin-bottom: 22px; }
.top { display: grid; grid-template-columns: minmax(300px, 5fr) 7fr; gap: 14px; }
.verdict { font-size: 14px; color: var(--soft); margin-bottom: 14px; min-height: 34px; display: flex; align-items: center; flex-wrap: wrap; gap: 4px 10px; }
.verdict strong { font-size: 17px; padding: 3px 12px; border-radius: 999px; background: var(--track); color: var(--ink); }
.gate.open .verdict strong { background: var(--open-soft); color: var(--open); }
.gate.shut .verdict strong { background: var(--shut-soft); color: var(--shut); }
.gauge { position: relative; height: 16px; border-radius: 8px; background: var(--track); overflow: hidden; }
.gauge .level { height: 100%; width: 100%; transform-origin: left; transform: scaleX(var(--share, 0)); background: var(--dispatched); transition: transform .4s ease-out, background-color .4s; }
.gate.shut .level { background: var(--evicted); }
.gauge .full { position: absolute; left: 66.667%; top: 0; bottom: 0; width: 2px; background: var(--ink); }
.scale { display: flex; justify-content: space-between; font-size: 13px; color: var(--soft); margin-top: 6px; }
.scale b { color: var(--ink); font-size: 15px; }
.figures { display: grid; grid-template-columns: repeat(3, 1fr); gap: 12px 18px; align-content: center; }
.figure { display: flex; flex-direction: column-reverse; }
.figure dt, .totals dt { color: var(--soft); font-size: 13px; }
.figure dd { font-size: 26px; font-weight: 650; letter-spacing: -.02em; line-height: 1.15; }
.lanes { display: grid; gap: 10px; }
.lane { background: var(--panel); border: 1px solid var(--line); border-radius: 14px; padding: 12px 18px 13px; box-shadow: var(--shadow); }
.lane-head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 14px; margin-bottom: 9px; }
.lane-head .policies { color: var(--soft); font-size: 13px; }
.lane-head .rates { margin-left: auto; color: var(--soft); font-size: 13px; }
.lane-head b { color: var(--ink); font-size: 15px; }
.road { display: grid; grid-template-columns: 1fr auto; gap: 12px; align-items: center; }
.line { height: 30px; border-radius: 8px; background: var(--track); display: flex; justify-content: flex-end; overflow: hidden; }
.queue { display: flex; flex-direction: row-reverse; gap: 2px; width: calc(var(--share, 0) * 100%); transition: width .4s ease-out; }
.queue i { display: block; min-width: 3px; flex: var(--grow, 0) 1 0; background: var(--tint, var(--rest)); transition: flex-grow .4s ease-out; }
.queue i.others { background: repeating-linear-gradient(45deg, var(--rest) 0 4px, transparent 4px 8px); }
.queue i.held, .swatch.held { opacity: .45; }
.post { display: flex; align-items: center; gap: 9px; min-width: 134px; font-size: 13px; color: var(--soft); }
.post svg { width: 26px; height: 34px; flex: none; }
.post .frame { stroke: var(--soft); stroke-width: 2.5; fill: none; stroke-linecap: round; }
.post .bar { fill: var(--open); transition: transform .4s ease-out, fill .4s; transform: translateY(-13px); }
.post.shut .bar { fill: var(--shut); transform: none; }
.post b { display: block; color: var(--open); font-size: 13px; line-height: 1.25; }
.post.shut b { color: var(--shut); }
.flows { display: flex; flex-wrap: wrap; gap: 4px 16px; margin-top: 9px; font-size: 13px; }
.flows:empty { display: none; }
.flows li { display: inline-flex; align-items: center; gap: 6px; min-width: 0; }
.flows .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; max-width: 22ch; }
.flows .count { color: var(--soft); }
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 3px; flex: none; background: var(--tint, var(--rest)); }
.t0 { --tint: var(--c0); } .t1 { --tint: var(--c1); } .t2 { --tint: var(--c2); } .t3 { --tint: var(--c3); }
.t4 { --tint: var(--c4); } .t5 { --tint: var(--c5); } .t6 { --tint: var(--c6); } .t7 { --tint: var(--c7); }
.more, .empty { color: var(--soft); font-size: 13px; margin-top: 8px; }
.columns { display: grid; grid-template-columns: 7fr 5fr; gap: 14px; align-items: stretch; }
.waits li { display: grid; grid-template-columns: 74px 1fr; gap: 1px 12px; padding: 8px 0; border-top: 1px solid var(--line); }
.waits li:first-child { border-top: 0; padding-top: 0; }
.waits .time { font-size: 17px; font-weight: 650; grid-row: span 2; }
.waits .who { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.waits .who small { color: var(--soft); font-weight: 400; font-size: 13px; margin-left: 6px; }
.waits .why { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; text-wrap: pretty; }
.columns > section { display: flex; flex-direction: column; }
.chart { display: block; width: 100%; flex: 1 0 110px; min-height: 110px; max-height: 260px; border-bottom: 1px solid var(--line); }
.chart .dispatched { fill: var(--dispatched); } .chart .rejected { fill: var(--rejected); } .chart .evicted { fill: var(--evicted); } .chart .unknown { fill: var(--track); }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: 12px; margin: 4px 0 12px; }
.totals { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: 4px 18px; }
.totals > div { display: flex; align-items: center; gap: 7px; }
.totals .swatch { margin-right: 7px; }
.totals dd { margin-left: auto; font-weight: 600; }
.totals .swatch.dispatched { background: var(--dispatched); } .totals .swatch.rejected { background: var(--rejected); } .totals .swatch.evicted { background: var(--evicted); }
.endpoints { display: grid; grid-template-columns: repeat(auto-fill, minmax(172px, 1fr)); gap: 10px; }
.endpoints li { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 11px 14px; font-size: 13px; color: var(--soft); box-shadow: var(--shadow); }
.endpoints .name { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 8px; color: var(--ink); font-weight: 600; font-size: 14px; margin-bottom: 7px; }
.endpoints .name span:first-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.badge { background: var(--warn-soft); color: var(--warn); border-radius: 999px; padding: 0 8px; font-size: 12px; font-weight: 600; line-height: 19px; }
.meter { height: 7px; border-radius: 4px; background: var(--track); overflow: hidden; margin: 3px 0 8px; }
.meter div { height: 100%; transform-origin: left; transform: scaleX(var(--share, 0)); background: var(--c0); transition: transform .4s ease-out; }
.meter.high div { background: var(--rejected); }
.row { display: flex; justify-content: space-between; }
.row b { color: var(--ink); font-weight: 600; }
.notice { max-width: 1140px; margin: 12px auto; padding: 12px 18px; background: var(--warn-soft); border-radius: 10px; }
footer { color: var(--soft); font-size: 13px; padding-bottom: 28px; }
.paused main { opacity: .75; }
@media (max-width: 820px) { .top, .columns { grid-template-columns: minmax(0, 1fr); } .columns > section { margin-bottom: 0; } .columns { margin-bottom: 22px; } }
@media (max-width: 560px) {
  header, main, footer { padding-left: 12px; padding-right: 12px; }
  header { gap: 10px; }
  h1 .light { display: none; }
  .aside { display: block; margin: 1px 0 0; }
  .panel, .lane { padding: 12px 13px; }
  .figures { grid-template-columns: repeat(2, 1fr); }
  .figure dd { font-size: 22px; }
  .lane-head .rates { margin-left: 0; width: 100%; }
  .post { min-width: 104px; gap: 6px; }
  .waits li { grid-template-columns: 62px minmax(0, 1fr); }
  .endpoints { grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); }
}
@media (prefers-reduced-motion: reduce) { *, *::before, *::after { transition: none !important; } }
@media (forced-colors: active) { .queue i, .swatch, .level, .meter div { forced-color-adjust: none; } }
`;
