import t from 'tap'
import { avatar } from '../../examples/demo/pages/avatar.js'
import { doneSentence, errorSentence } from '../../examples/demo/sentences.js'
import { html } from '../../examples/demo/html.js'

t.test('text is escaped, markup is taken as it is', async t => {
  const name = '<b title="x">Tom & Jerry\'s</b>'

  t.equal(html`<p>${name}</p>`.toString(), '<p>&lt;b title=&quot;x&quot;&gt;Tom &amp; Jerry&#39;s&lt;/b&gt;</p>')
  t.equal(html`<p>${html`<b>${'<'}</b>`}</p>`.toString(), '<p><b>&lt;</b></p>')
  t.equal(html`<ul>${['<', html`<li>`, 2]}</ul>`.toString(), '<ul>&lt;<li>2</ul>')
})

t.test('what is absent leaves nothing behind', async t => {
  t.equal(html`a${null}b${undefined}c${false}d${[]}e`.toString(), 'abcde')
})

t.test('a known code has its sentence, and anything else a general one', async t => {
  t.equal(errorSentence('access_denied'), 'You cancelled the sign-in.')
  t.equal(doneSentence('signed_out'), 'You are signed out.')
  for (const code of ['nonsense', '<b>', 'constructor', '__proto__', ['invalid'], undefined]) {
    t.equal(errorSentence(code), 'Something went wrong. Try again.')
    t.equal(doneSentence(code), undefined)
  }
})

t.test('a user without a picture has initials', async t => {
  t.match(avatar({ name: 'Ada King Lovelace' }).toString(), '>AL</span>')
  t.match(avatar({ email: 'grace.hopper@example.com' }).toString(), '>GH</span>')
  t.match(avatar({ name: '<' }).toString(), '>&lt;</span>')
  t.match(avatar({ name: 'Ada', picture: 'https://id.example/ada.png' }).toString(), '<img class="avatar" src="https://id.example/ada.png" alt="">')
})
