import { factorsOfUser } from '../../current-user/factors.js'
import { withError } from '../../http/redirects.js'
import { checkbox, codeField, form, ways } from '../../pages/form.js'
import { html } from '../../pages/html.js'
import { passkeyForm } from '../../pages/passkey-form.js'
import { filled, timeIn } from '../../pages/texts.js'
import { principalOf } from '../../session/record.js'
import { pendingSecondFactor } from '../../sign-in/second-factor.js'
import { pathOf } from '../../web/act.js'
import { page, redirected, targetsOf } from '../../web/page.js'
import { isChecked } from '../../web/schema-parts.js'
import { enrollingUser } from '../enrolment.js'
import { finishSignIn } from '../second-factor.js'
import { enrolPage, leaveForm, setUpOf } from './totp.js'

/** The page on which a user finishes a sign-in that waits, or sets up the factor that it needs. */
export const secondFactor = page({ path: '/local/second-factor', when: finishSignIn.when }, async (auth, view) => {
  const { request, reply, texts, next, typed } = view
  const { pages } = auth
  const waiting = await pendingSecondFactor(auth, request)
  if (waiting === null) {
    // Another tab has finished the sign-in, or it has expired.
    const login = principalOf(request) === null ? pages.loginWith(request, next) : null
    return redirected(reply, login === null ? pages.afterSuccess(request, next) : withError(login, 'invalid_state'))
  }
  const { needs, userId } = waiting
  if (needs === 'enrolment') {
    return enrolPage(auth, view, setUpOf(auth, view, await enrollingUser(auth, request, false)))
  }
  const kinds = await factorsOfUser(auth, userId)
  const hasCode = kinds.some(kind => kind !== 'passkey')
  const passkey = kinds.includes('passkey') ? auth.passkeyPaths : null
  const trustedDays = auth.factors.secondFactor?.trustedBrowsers?.days
  const { language, signIn, factors, confirm } = texts
  const trust = trustedDays !== undefined &&
    checkbox('trust', filled(factors.trust, { time: timeIn(language, trustedDays, 'day') }), isChecked(typed.trust))
  const [action, hidden] = [pathOf(auth, 'local/second-factor'), targetsOf(auth, 'local/second-factor', { next })]
  const fields = [codeField('code', factors.code, 'text'), trust]
  return {
    title: factors.secondTitle,
    script: passkey && passkey.script,
    content: [
      ways(
        signIn.or,
        hasCode && [html`<p>${factors.codeText}</p>`, form({ action, hidden, fields, submit: confirm.submit })],
        passkey && passkeyForm(texts, {
          ceremony: 'factor', options: passkey.options, action, hidden, fields: !hasCode && trust
        })
      ),
      leaveForm(auth, texts)
    ]
  }
})
