import t from 'tap'
import { html } from '../../examples/demo/html.js'

t.test('text is escaped, markup is taken as it is', async t => {
  const name = '<b title="x">Tom & Jerry\'s</b>'

  t.equal(html`<p>${name}</p>`.markup, '<p>&#60;b title=&#34;x&#34;&#62;Tom &#38; Jerry&#39;s&#60;/b&#62;</p>')
  t.equal(html`<p>${html`<b>${'<'}</b>`}</p>`.markup, '<p><b>&#60;</b></p>')
  t.equal(html`<ul>${['<', html`<li>`, 2]}</ul>`.markup, '<ul>&#60;<li>2</ul>')
})

t.test('what is absent leaves nothing behind', async t => {
  t.equal(html`a${null}b${undefined}c${false}d${[]}e`.markup, 'abcde')
})
