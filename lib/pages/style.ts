/**
 * The style of all pages. An application changes the custom properties in its own stylesheet:
 * `:root { --auth-color: #7c3aed }`. Sides are logical, for scripts from right to left.
 */
export const STYLE = `
:root {
  color-scheme: light dark;
  --auth-font: system-ui, sans-serif;
  --auth-width: 26rem;
  --auth-radius: .5rem;
  --auth-color: #1d4ed8;
  --auth-on-color: #fff;
  --auth-text: #1f2937;
  --auth-faint: #5b6472;
  --auth-line: #8a93a1;
  --auth-rule: color-mix(in srgb, var(--auth-line) 45%, transparent);
  --auth-back: #fff;
  --auth-danger: #b91c1c;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --auth-color: #93b4fd;
    --auth-on-color: #0b1220;
    --auth-text: #e5e7eb;
    --auth-faint: #a3adbb;
    --auth-line: #6b7685;
    --auth-back: #111827;
    --auth-danger: #fca5a5;
  }
}
* { box-sizing: border-box }
body {
  max-width: var(--auth-width); margin: 6vh auto; padding: 0 1rem;
  font: 1rem/1.5 var(--auth-font); color: var(--auth-text); background: var(--auth-back);
  overflow-wrap: anywhere;
}
.wide { max-width: calc(1.5 * var(--auth-width)) }
.wide :is(input, button, .button) { max-inline-size: var(--auth-width) }
header a, footer { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; color: var(--auth-faint) }
header a { font-weight: 600; text-decoration: none }
header img { block-size: 2rem }
footer { margin-block-start: 3rem; font-size: .875rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
h2 { font-size: 1.125rem; margin-block: 0 .5rem }
section { margin-block-start: 1.5rem; padding-block-start: 1.25rem; border-block-start: 1px solid var(--auth-rule) }
ul { list-style: none; margin: 0; padding: 0 }
li, .item { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; justify-content: space-between }
.item { margin-block-end: 1.25rem }
li > span, .item > span { flex: 1 1 10rem }
ul:has(details) > li { justify-content: end }
li small { display: block }
form ~ ul { margin-block-start: 1.25rem }
li + li { margin-block-start: .75rem }
li > form, .item > form, :is(li, .item) > form button, li summary { margin: 0; inline-size: auto }
.row { padding: 0 }
.row, .row + section { margin: 0 }
section:not(.row) + .row { margin-block-start: 1.5rem }
.row h2 { font-size: 1rem; margin: 0 }
.head {
  display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 1rem; padding-block: 1rem;
  color: inherit; text-decoration: none;
}
.head > span { grid-column: 1 }
.head > .change { grid-area: 1 / -2 / span 2; align-self: center; color: var(--auth-color) }
.head:hover .change { text-decoration: underline }
.row details > div, .row > form { padding-block-end: 1.5rem }
.row form:first-child > :is(label:first-of-type, input + button), .row > form button { margin-block-start: 0 }
@media (max-width: 36rem) { ul:has(details) > li > span { flex-basis: 100% } }
@media (min-width: 36rem) {
  .head { grid-template-columns: 10rem minmax(0, 1fr) auto }
  .head > span { grid-column: 2 }
  .head > .change { grid-area: 1 / -2; align-self: start }
  .row details > div, .row > form { margin-inline-start: 11rem }
}
a { color: var(--auth-color) }
small, .faint { color: var(--auth-faint); font-size: .875rem; font-weight: 400 }
label { display: block; margin-block-start: 1rem; font-weight: 600 }
label.check { font-weight: 400 }
input, select, button, .button {
  inline-size: 100%; padding: .625rem .75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--auth-line); border-radius: var(--auth-radius);
}
label input, label select { margin-block-start: .25rem; font-weight: 400 }
select option { color: var(--auth-text); background: var(--auth-back) }
[type=checkbox] { inline-size: auto; margin: 0; margin-inline-end: .5rem; accent-color: var(--auth-color) }
button, .button {
  display: block; margin-block-start: 1.25rem; text-align: center; text-decoration: none; cursor: pointer;
  color: var(--auth-on-color); background: var(--auth-color); border-color: var(--auth-color); font-weight: 600;
}
.quiet, :where(li, .item) > form button, li summary, form ~ form button, .danger {
  color: var(--auth-color); background: transparent;
}
button.danger, .head .danger { color: var(--auth-danger); border-color: var(--auth-danger) }
.quiet { margin-block-start: .75rem }
:is(button, .button) img { block-size: 1.25em; margin-inline-end: .5rem; vertical-align: -.25em }
li > form button, .item button, li summary { padding: .25rem .75rem; border-color: var(--auth-line) }
.qr {
  inline-size: 14rem; max-inline-size: 100%; margin: 1.25rem auto; padding: 1rem;
  background: #fff; forced-color-adjust: none;
}
.qr svg { display: block }
code { font: 1rem ui-monospace, monospace }
.codes { user-select: all }
.codes li + li { margin: 0 }
.remembered, body:has([name=remember]:checked) .once { display: none }
body:has([name=remember]:checked) .remembered { display: block }
.check:has([name=saved]:not(:checked)) + .button { display: none }
summary { cursor: pointer; list-style: none }
li summary { border: 1px solid; border-radius: var(--auth-radius); font-weight: 600 }
li details { display: contents }
li details::details-content { order: 1; flex-basis: 100% }
li details:not([open])::details-content { display: none }
.or { display: flex; gap: 1rem; align-items: center; margin-block: 1.25rem; color: var(--auth-faint) }
.or::before, .or::after { content: ''; flex: 1; border-block-start: 1px solid var(--auth-rule) }
.or + :is(button, .button), .or + form:not(:has(label)) > button { margin-block-start: 0 }
:focus-visible { outline: 3px solid var(--auth-color); outline-offset: 2px }
[role=alert], [role=status] { padding: .5rem 1rem; border: 2px solid; border-radius: var(--auth-radius) }
[aria-invalid] { border-color: var(--auth-danger) }
[role=alert] { color: var(--auth-danger) }
`
