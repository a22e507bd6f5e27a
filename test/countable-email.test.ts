import t from 'tap'
import { canonicalEmail, countableEmail } from '../lib/index.js'

t.test('attack 211: spellings of one mailbox are counted as one', async t => {
  const spellings: Record<string, string[]> = {
    'ada@gmail.com': ['Ada@GMAIL.com', 'a.d.a@gmail.com', 'ada+trial@gmail.com', 'A.da+x+y@googlemail.com', 'ada.@gmail.com', ' ada+@gmail.com '],
    'a.da@outlook.com': ['A.Da+1@Outlook.com'],
    'ada@hotmail.com': ['ada+x@hotmail.com'],
    'ada@icloud.com': ['ada+x@icloud.com', 'ada@me.com', 'ada@mac.com'],
    'adaking@proton.me': ['ada.king@proton.me', 'ada_king+x@protonmail.com', 'Ada-King@pm.me', 'adaking@protonmail.ch'],
    'ada@fastmail.com': ['ada+x@fastmail.com', 'anything@ada.fastmail.com'],
    'ada@fastmail.fm': ['x@ada.fastmail.fm'],
    'ada@yahoo.com': ['ada-shop@yahoo.com'],
    'ada@xn--bcher-kva.example': ['Ada@Bücher.example', 'ada@BU\u0308CHER.example']
  }
  for (const [counted, emails] of Object.entries(spellings)) {
    for (const email of [counted, ...emails]) t.equal(countableEmail(email), counted, email)
  }
})

t.test('where the provider is not known to ignore it, another spelling is another mailbox', async t => {
  for (const email of [
    'ada+x@example.com', 'a.da@example.com', 'a-da@gmail.com', 'a.da@hotmail.com', 'ada+x@yahoo.com', 'a.da@icloud.com', 'ada@mail.gmail.com',
    'ada@notgmail.com', 'x@a.b.fastmail.com', 'ada+x@xn--gmail-xya.com'
  ]) {
    t.equal(countableEmail(email), canonicalEmail(email), email)
  }
})

t.test('what is no address is none, and nothing becomes an empty one', async t => {
  for (const none of ['', 'ada', '@gmail.com', 'a@b@gmail.com', 'ada@', 'ada\u0000@gmail.com', `${'a'.repeat(300)}@gmail.com`]) {
    t.equal(countableEmail(none), null, none.slice(0, 20))
  }
  for (const odd of ['+x@gmail.com', '...@gmail.com', '._-@proton.me']) t.equal(countableEmail(odd), odd)
})

t.test('the form is one of its own: counting it again changes nothing', async t => {
  for (const email of ['a.d+x@gmail.com', 'x@ada.fastmail.com', 'a-b@yahoo.com', '+x@gmail.com', 'a.b+c@pm.me']) {
    const counted = String(countableEmail(email))
    t.equal(countableEmail(counted), counted, email)
  }
})
