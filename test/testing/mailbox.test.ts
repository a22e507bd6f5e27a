import t from 'tap'
import type { Mail } from '../../lib/index.js'
import type { LinkMailKind, NoticeMailKind } from '../../lib/core/mail.js'
import { mailbox } from '../../lib/testing.js'

const ABOUT = { requestId: 'req-1', ip: '127.0.0.1', userAgent: null, language: null }
const ADA = { to: 'ada@example.com', userId: null, name: null, accountUrl: null, about: ABOUT }

const link = (kind: LinkMailKind, token: string): Mail => ({ ...ADA, kind, token, url: `https://app.example/${token}`, code: null, expiresIn: 60 })
const notice = (kind: NoticeMailKind): Mail => ({ ...ADA, kind, url: null, token: null, code: null, expiresIn: null })

t.test('the oldest mail of a kind that was not read is next', async t => {
  const { sendMail, next, all } = mailbox()
  const mails = [link('verify-email', '1'), link('reset-password', '2'), notice('password-changed'), link('reset-password', '3')]
  for (const mail of mails) await sendMail(mail)

  t.equal((await next('reset-password')).token, '2')
  t.equal((await next('reset-password')).url, 'https://app.example/3')
  t.equal(await next(), mails[0])
  t.equal(await next(), mails[2])
  t.strictSame(all, mails, 'those that were read too')
})

t.test('a mail that is sent later is waited for, and each call gets another one', async t => {
  const { sendMail, next } = mailbox()

  const waiting = [next('reset-password'), next('reset-password'), next('exists'), next()]
  for (const mail of [notice('exists'), link('reset-password', '1'), link('reset-password', '2'), notice('email-changed')]) sendMail(mail)

  t.match(await Promise.all(waiting), [{ token: '1' }, { token: '2' }, { kind: 'exists' }, { kind: 'email-changed' }])
})

t.test('when the time is over, the error names the mails that have arrived', async t => {
  const { sendMail, next } = mailbox()

  await t.rejects(next(undefined, { timeout: 1 }), { message: 'no mail arrived within 1 ms; in the mailbox: nothing' })
  sendMail(link('verify-email', '1'))
  sendMail(notice('exists'))
  await next('exists')
  await t.rejects(next('reset-password', { timeout: 5 }), {
    message: 'no reset-password mail arrived within 5 ms; in the mailbox: verify-email to ada@example.com, exists to ada@example.com (read)'
  })
})

t.test('a call that gave up takes no mail from a later one', async t => {
  const { sendMail, next } = mailbox()

  await t.rejects(next('exists', { timeout: 1 }))
  sendMail(notice('exists'))

  t.match(await next('exists', { timeout: 1 }), { kind: 'exists' })
})
