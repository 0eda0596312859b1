// The look of the HTML report, light and dark, on screen and on paper.

/** The page's one style sheet. */
export const style = `
:root{--bg:#fbfbfa;--fg:#1d2126;--dim:#626a73;--line:#dcdfe3;--card:#fff;--pass:#1a7f4b;--pass-bg:#e4f4ea;--fail:#b4232c;--fail-bg:#fbe4e4;--error:#8a5a00;--error-bg:#fbefd2;--open:#8f3f00;--open-bg:#fbe3d0;--absent:#626a73;--absent-bg:#eceef0;--shade:rgba(20,24,28,.35)}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7ea;--dim:#9aa3ad;--line:#30363d;--card:#1b1f24;--pass:#67d596;--pass-bg:#143323;--fail:#ff8f8f;--fail-bg:#471a1d;--error:#f0bf5c;--error-bg:#3d2e0c;--open:#ffa366;--open-bg:#472511;--absent:#9aa3ad;--absent-bg:#262b31;--shade:rgba(0,0,0,.6)}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:86rem;padding:2.2rem 1.6rem 1.2rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{margin:0 0 .5rem;font-size:1.7rem;letter-spacing:-.015em;line-height:1.2}
h2{margin:2.2rem 0 .7rem;font-size:1.1rem}
.verdict{display:inline-block;margin:0 0 1.4rem;padding:.25rem .8rem;border-radius:1rem;font-weight:600}
.pass{color:var(--pass)}.fail{color:var(--fail)}.error{color:var(--error)}.not-enforced{color:var(--open)}.not-applicable{color:var(--absent)}
.verdict.pass,.matrix .pass{background:var(--pass-bg)}.verdict.fail,.matrix .fail{background:var(--fail-bg)}.verdict.error,.matrix .error{background:var(--error-bg)}
.verdict.not-enforced,.matrix .not-enforced{background:var(--open-bg)}.verdict.not-applicable,.matrix .not-applicable{background:var(--absent-bg)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.6rem;background:var(--card)}
table{border-collapse:collapse;width:100%}
.matrix td,.matrix th{padding:.28rem .2rem;text-align:center;border-bottom:1px solid var(--line)}
.matrix tr>:last-child{padding-right:.7rem}
.matrix tbody tr:last-child>*,.facts tbody tr:last-child>*{border-bottom:0}
.matrix thead th,.matrix thead td{vertical-align:bottom;padding:.7rem .2rem .5rem;font-size:.8rem;font-weight:600;color:var(--dim)}
.matrix thead span{writing-mode:vertical-rl;transform:rotate(180deg);white-space:nowrap}
.matrix tbody th{position:sticky;left:0;min-width:9rem;padding:.5rem .9rem;text-align:left;overflow-wrap:anywhere;background:var(--card);font-weight:600}
.matrix small{display:block;color:var(--dim);font-weight:400;font-size:.78rem}
.matrix button{width:100%;min-width:3.2rem;padding:.5rem .2rem;border:0;border-radius:.4rem;font:inherit;font-size:.88rem;font-variant-numeric:tabular-nums;white-space:nowrap;cursor:pointer}
.matrix button:hover,.matrix button:focus-visible{outline:2px solid currentColor;outline-offset:-2px}
.none{color:var(--dim)}
.legend{display:inline-block;margin-right:1em}
.hint{margin:.5rem 0 0;color:var(--dim);font-size:.85rem}
details{margin:.35rem 0;border:1px solid var(--line);border-radius:.5rem;background:var(--card)}
summary{display:flex;gap:.6rem;padding:.45rem .8rem;cursor:pointer;list-style:none}
summary::-webkit-details-marker{display:none}
summary>span:first-child{flex:none;width:1.1em;text-align:center;font-weight:700}
code,details li{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.8rem}
code{color:var(--dim)}
details ul{margin:0;padding:.1rem .8rem .7rem 2.6rem;list-style:none;overflow-wrap:anywhere}
.facts{font-size:.88rem}.facts td,.facts th{padding:.45rem .8rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap}
.facts td:last-child{min-width:15rem;white-space:normal}.facts th{color:var(--dim);font-weight:600}
.panel{width:min(50rem,94vw);max-height:86vh;padding:0 1.3rem 1.2rem;border:1px solid var(--line);border-radius:.8rem;background:var(--bg);color:var(--fg);box-shadow:0 1.2rem 3rem var(--shade)}
.panel::backdrop{background:var(--shade)}
.bar{position:sticky;top:0;display:flex;justify-content:space-between;align-items:center;padding:1rem 0 .5rem;background:var(--bg)}
.bar h2{margin:0}
.bar button{border:0;background:none;color:var(--dim);font-size:1.1rem;cursor:pointer}
footer{margin-top:2rem;color:var(--dim);font-size:.82rem}
@media(max-width:72rem){body{padding:1.4rem 1rem 1rem}.matrix,.matrix tbody,.matrix th{display:block}.matrix thead,.matrix .none{display:none}.matrix tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(6.6rem,1fr));gap:.4rem;padding:.7rem;border-bottom:1px solid var(--line)}.matrix tbody tr:last-child{border-bottom:0}.matrix tbody tr>*,.matrix tbody tr>:last-child{padding:0;border:0}.matrix tbody th{position:static;grid-column:1/-1;padding:0}.matrix button::before{content:attr(data-title);display:block;font-size:.75rem;color:var(--fg)}}
@media print{body{max-width:none;padding:0}.panel{display:block;position:static;width:auto;max-height:none;box-shadow:none;break-inside:avoid}.hint,.bar button{display:none}}
`
