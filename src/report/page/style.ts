const light = `--paper:#fbfaf7;--raised:#fff;--ink:#1c2326;--soft:#5b666a;--faint:#8d979a;--line:#dfdcd3;--hair:#ebe8e0;
--h0:#1d6570;--h1:#4f8f97;--h2:#88b5b9;--h3:#b9d3d4;--h4:#dbe7e6;--h5:#e2a93b;--f:#c8412a;--bad:#b33a22;--ok:#1d6570;--warn:#9a6a06;
--chip:#7a4fa3;--bulk:#5f7f9c;--tail:#a9bccb;--late:#c8412a;--rule:#1c2326;--retired:#c9bda6;`

const dark = `--paper:#12171a;--raised:#181f22;--ink:#e4e7e5;--soft:#a0abad;--faint:#778386;--line:#2c3539;--hair:#222a2d;
--h0:#57b2b6;--h1:#3c878c;--h2:#2c666b;--h3:#224a4e;--h4:#1d3639;--h5:#c08a2a;--f:#ff6f52;--bad:#ff8a70;--ok:#6cc4c6;--warn:#e0b04c;
--chip:#c39be6;--bulk:#7fa3c2;--tail:#41586b;--late:#ff6f52;--rule:#f2f2ec;--retired:#5d5747;`

/** The page's style sheet: one scale of type, one hue for what is there, one for what is wrong. */
export const style = `:root{color-scheme:light dark;${light}}
@media (prefers-color-scheme:dark){:root{${dark}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;overflow-wrap:anywhere;background:var(--paper);color:var(--ink);font:13px/1.45 "Source Sans 3","Segoe UI",system-ui,-apple-system,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums lining-nums}
main{max-width:1180px;margin:0 auto;padding:28px 28px 56px}
small{font-size:11px;color:var(--soft)}
code{font:11.5px/1.3 ui-monospace,"SF Mono",Menlo,Consolas,monospace;background:var(--hair);padding:1px 5px;border-radius:3px;-webkit-box-decoration-break:clone;box-decoration-break:clone}
a{color:inherit}
header{display:flex;flex-wrap:wrap;gap:8px 32px;align-items:baseline;justify-content:space-between;padding-bottom:12px;border-bottom:1px solid var(--ink)}
.mark{font-size:15px;letter-spacing:.02em}
.mark b{font-weight:650}
.chip{margin-left:8px;padding:2px 8px 3px;border:1px solid var(--chip);border-radius:99px;color:var(--chip);font-size:11px;font-weight:600;letter-spacing:.04em}
.ids{display:flex;flex-wrap:wrap;gap:4px 26px;margin:0}
.ids div{display:flex;gap:7px;align-items:baseline;min-width:0}
dt{color:var(--soft);font-size:11px}
dd{margin:0;min-width:0}
.verdict{padding:22px 0 18px;display:grid;grid-template-columns:minmax(0,5fr) minmax(0,6fr);gap:10px 40px;align-items:start}
h1{margin:0;font-size:30px;line-height:1.12;font-weight:600;letter-spacing:-.015em;text-wrap:balance}
.verdict.yes h1{color:var(--ok)}.verdict.look h1{color:var(--warn)}.verdict.no h1{color:var(--bad)}
.verdict ul{list-style:none;margin:5px 0 0;padding:0;display:grid;gap:5px}
.verdict li{padding-left:15px;position:relative}
.verdict li::before{content:"";position:absolute;left:0;top:.5em;width:7px;height:7px;border-radius:50%;background:var(--faint)}
.verdict li.look::before{background:var(--warn)}.verdict li.no::before{background:var(--bad)}
.gauges{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));border-top:1px solid var(--line);border-left:1px solid var(--line)}
.gauge{padding:10px 14px 11px;border-right:1px solid var(--line);border-bottom:1px solid var(--line);background:var(--raised);display:flex;flex-direction:column}
.gauge h2{margin:0;font-size:11px;font-weight:500;color:var(--soft);padding:0;border:0}
.figure{margin:1px 0 5px;font-size:21px;line-height:1.15;font-weight:550;letter-spacing:-.01em}
.alarm .figure{color:var(--bad)}
.about{margin:auto 0 0;font-size:11.5px;line-height:1.35;color:var(--soft)}
.bar{display:block;width:100%;height:3px;margin:0 0 6px}
.bar .all{fill:var(--line)}.bar .part{fill:var(--h0)}
h2{margin:38px 0 10px;padding-top:9px;border-top:1px solid var(--ink);font-size:15px;font-weight:620;letter-spacing:-.005em}
section>p{margin:0 0 12px;max-width:76ch}
.none{color:var(--soft)}
.small{font-size:11.5px;color:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:4px 15px;margin:0 0 8px;font-size:11px;color:var(--soft)}
.legend span{display:inline-flex;align-items:center;gap:5px}
.k{width:14px;height:9px;display:inline-block}
.k.h0{background:var(--h0)}.k.h1{background:var(--h1)}.k.h2{background:var(--h2)}.k.h3{background:var(--h3)}.k.h4{background:var(--h4)}.k.h5{background:var(--h5)}.k.f{background:var(--f)}
.k.u-active{background:var(--h3)}.k.u-created{background:var(--h0)}.k.u-retired{background:var(--retired)}.k.u-removed{background:var(--f)}
.kl{width:16px;height:5px;background:var(--bulk)}.kx{width:16px;height:5px;background:var(--late)}.km{width:2px;height:11px;background:var(--rule)}
.readout{position:sticky;top:0;z-index:2;margin:0;padding:6px 0;max-width:none;background:var(--paper);border-bottom:1px solid var(--line);font-weight:550;white-space:pre-wrap;min-height:31px}
.map{--at:-9%}
.row{display:grid;grid-template-columns:minmax(0,270px) minmax(0,1fr) 148px 172px;column-gap:16px;align-items:center;height:15px;outline:0}
.row.head{height:22px;font-size:10.5px;color:var(--soft)}
.axis{position:relative;height:14px}
.axis i{position:absolute;font-style:normal;font-size:10px;color:var(--soft);padding-left:3px;border-left:1px solid var(--line);line-height:13px}
.family{margin:8px 0 1px;font-size:11px;font-weight:620;display:flex;gap:6px;align-items:baseline}
.family small{font-size:10px;font-weight:400}
.name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;font-size:12px}
.heat,.lag{position:relative;display:block;height:11px}
.row.head .heat,.row.head .lag{height:14px}
.heat svg,.lag svg{display:block;width:100%;height:100%}
.heat svg{shape-rendering:crispEdges}
.lag{background:linear-gradient(var(--hair),var(--hair)) 0 50%/100% 1px no-repeat}
.row.head .lag{background:none}
.lag em{font-style:normal;font-size:10px;color:var(--soft);line-height:11px;display:block;background:var(--paper)}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}.h5{fill:var(--h5)}.f{fill:var(--f)}
.bulk{fill:var(--bulk)}.tail{fill:var(--tail)}.mid{fill:var(--paper)}.x{fill:var(--late)}.lag .rule{fill:var(--rule)}
.fresh{font-size:11px;color:var(--soft);white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.fresh b{font-weight:400;color:var(--ink)}
.fresh.awaited{color:var(--soft)}.fresh.behind{color:var(--warn)}.fresh.stopped{color:var(--bad)}
.row.on .name{font-weight:650}
.row.on .heat::after{content:"";position:absolute;left:var(--at);top:-2px;bottom:-2px;width:3px;margin-left:-1.5px;border:1px solid var(--paper);background:var(--ink)}
.row:focus-visible{box-shadow:0 0 0 2px var(--paper),0 0 0 3.5px var(--ink);border-radius:1px}
summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--ink);outline-offset:2px}
.chart{display:block;width:100%;max-width:900px;height:auto;overflow:visible}
.chart .t,.chart .rulet{font-size:11px;fill:var(--soft)}.chart .rulet{fill:var(--ink)}
.chart .base{stroke:var(--line)}.chart line.rule{stroke:var(--rule);stroke-width:1.5}
.intime{fill:var(--bulk)}.late{fill:var(--late)}
.active{fill:var(--h3)}.created{fill:var(--h0)}.retired,.wentretired{fill:var(--retired)}.removed{fill:var(--f)}
.scroll{overflow-x:auto}
table.narrow{max-width:720px}
table{border-collapse:collapse;width:100%;font-size:12px}
th{text-align:left;font-weight:500;color:var(--soft);font-size:11px;white-space:nowrap}
th,td{padding:4px 14px 4px 0;border-bottom:1px solid var(--hair);vertical-align:baseline}
td,th{white-space:nowrap;overflow-wrap:normal}
.n{text-align:right}
.value,.id{font:11.5px/1.3 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
.bad{color:var(--bad)}.ok{color:var(--ok)}
.pair{min-width:118px}
.pair svg{display:block;width:100%;height:7px;margin-top:2px}
.plan{fill:var(--line)}.done{fill:var(--h0)}
.versions{display:block;width:100%;height:44px;margin-bottom:10px;border-bottom:1px solid var(--line)}
.versions .fetch{fill:var(--h0)}.versions .other{fill:var(--h2)}.versions .lost{fill:var(--f)}
.two{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 40px}
details{margin:10px 0}
summary{cursor:pointer;color:var(--soft);font-size:11.5px}
.notes{display:grid;grid-template-columns:max-content minmax(0,72ch);gap:5px 18px;font-size:12px;color:var(--soft)}
.notes dt{color:var(--ink)}
@media (max-width:900px){.row{grid-template-columns:minmax(0,190px) minmax(0,1fr) 118px 110px;column-gap:12px}.gauges{grid-template-columns:repeat(2,minmax(0,1fr))}.verdict{grid-template-columns:minmax(0,1fr)}.two{grid-template-columns:minmax(0,1fr)}}
@media (max-width:620px){main{padding:18px 16px 40px}h1{font-size:25px}
.row{grid-template-columns:minmax(0,1fr) auto;height:auto;row-gap:2px;padding:3px 0}
.row .heat{grid-column:1/-1;grid-row:2;height:12px}.row .lag{grid-column:1/-1;grid-row:3;height:8px}
.row.head .name,.row.head .fresh{display:none}.row.head{height:auto}.row.head .heat{grid-row:1;height:14px}.row.head .lag{grid-row:2;height:14px}
.lag em{line-height:8px;font-size:9px}.row.head{position:static}
.fresh{max-width:46vw}.ids{gap:2px 18px}.legend{gap:3px 12px}.gauge{padding:8px 11px 9px}.figure{font-size:18px}
.notes{grid-template-columns:minmax(0,1fr);gap:1px}.notes dt{margin-top:7px}.chart .t,.chart .rulet{font-size:21px}}
@media (prefers-contrast:more){:root{--soft:var(--ink);--faint:var(--ink);--line:var(--soft)}}
@media print{.readout{position:static}body{background:#fff}}
@media (forced-colors:active){svg{forced-color-adjust:none}}`
