/** The pages of the option `pages`. They are loaded only with it. */
import type { FastifyRequest } from 'fastify'
import { type AuthContext, hasFactors, hasLocal, hasMails } from '../context.js'
import { currentPrincipal, currentUser } from '../current-user/current.js'
import { methodsIn } from '../current-user/methods.js'
import { missingAuthentication } from '../current-user/recent.js'
import { listFactors } from '../factors/factor-list.js'
import { UnknownPasskey } from '../factors/passkey-ceremonies.js'
import { accountPage } from '../pages/account-page.js'
import { enrolPage, factorsPage } from '../pages/factor-pages.js'
import { providerLabel } from '../pages/provider-label.js'
import {
  type OfferedProvider, type Targets, confirmPage, forgotPasswordPage, linkSentPage, registerPage, signInPage,
  signedInPage
} from '../pages/sign-in-pages.js'
import type { Principal } from '../session/record.js'
import { sessionsOfUser } from '../sign-in/user-sessions.js'
import { type Act, pathOf } from '../web/act.js'
import { page, redirected, targetsOf, withQuery } from '../web/page.js'
import { removeMethod, rename } from './account.js'
import { isCodeMailed, maySendMailCode } from './enrolment.js'

/** The page on which users sign in; a signed-in user sees who they are. */
const signIn = page({ path: '/pages/sign-in' }, async (auth, { request, texts, next, typed, failure }) => {
  const principal = await currentPrincipal(auth, request)
  if (principal !== null) {
    return signedInPage(texts, {
      user: nameOf(principal),
      next: auth.pages.afterSuccess(request, next),
      logout: pathOf(auth, 'logout'),
      after: pathOfPage(auth, 'sign-in', next)
    })
  }
  const { providers, remember, factors: { passkeys }, passkeyPaths } = auth
  const targets = targetsOf(auth, 'pages/sign-in', { next })
  return signInPage(texts, {
    targets,
    providers: offered(auth, providers.map(({ name }) => name), targets),
    login: hasLocal(auth) ? pathOf(auth, 'local/login') : null,
    email: textIn(typed.email),
    asksToRemember: remember !== null,
    forgotPassword: hasMails(auth, 'forgotPassword') ? pathOfPage(auth, 'forgot-password', next) : null,
    register: canRegister(auth) ? pathOfPage(auth, 'register', next) : null,
    passkey: passkeys && passkeyPaths && {
      ...passkeyPaths,
      action: pathOf(auth, 'local/passkeys/login'),
      unknown: failure?.cause instanceof UnknownPasskey
        ? { rpId: passkeys.relyingParty.rpId, credentialId: failure.cause.id }
        : null
    }
  })
})

/** The page on which users register. */
const register = page({ path: '/pages/register', when: canRegister }, async (auth, { request, texts, next, typed }) => {
  const { local, remember } = auth
  const verify = local?.registration?.verify
  // A page after the registration that says the same for each address.
  const after = verify === 'later' ? next : pathOfPage(auth, 'link-sent', next)
  return registerPage(texts, {
    targets: { ...targetsOf(auth, 'pages/register', { next }), next: after },
    action: pathOf(auth, 'local/register'),
    email: textIn(typed.email),
    name: textIn(typed.name),
    minLength: minLengthOf(auth),
    isFirst: verify === 'first',
    asksToRemember: remember !== null && verify === 'later',
    signIn: signInPath(auth, request, next)
  })
})

/** The page on which users ask for the link that chooses a new password. */
const forgotPassword = page({
  path: '/pages/forgot-password', when: auth => hasMails(auth, 'forgotPassword')
}, async (auth, { request, texts, next, typed }) => {
  return forgotPasswordPage(texts, {
    targets: { ...targetsOf(auth, 'pages/forgot-password', { next }), next: pathOfPage(auth, 'link-sent', next) },
    action: pathOf(auth, 'local/forgot-password'),
    email: textIn(typed.email),
    signIn: signInPath(auth, request, next)
  })
})

/** The page after a form that sends a link: the same for each address. */
const linkSent = page({
  path: '/pages/link-sent', when: auth => hasMails(auth)
}, async (auth, { request, texts, next }) => {
  return linkSentPage(texts, { signIn: signInPath(auth, request, next) })
})

/** The page on which the signed-in user sees and changes their account. */
const account = page({ path: '/pages/account' }, async (auth, { request, reply, texts }) => {
  const present = await currentUser(auth, request)
  const here = pathOfPage(auth, 'account')
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const { user, links } = present
  const { local, providers, listedSessions, factors: { passkeys }, passkeyPaths } = auth
  const has = (name: string): boolean => links.some(({ provider }) => provider === name)
  const others = providers.map(({ name }) => name).filter(name => !has(name))
  const after = (params: Record<string, string>): Targets => ({ next: withQuery(here, params), error_next: here })
  const saved = after({ done: 'saved' })
  const pathIf = (isMounted: boolean, route: string): string | null => isMounted ? pathOf(auth, route) : null
  return accountPage(texts, {
    user: { name: user.name, email: user.email, isVerified: user.emailVerified },
    hasPassword: has('local'),
    minLength: minLengthOf(auth),
    methods: links.map(({ provider, claims: { email = null } }) => ({
      provider, label: provider === 'local' ? null : providerLabel(provider), email
    })),
    factors: hasFactors(auth) ? pathOfPage(auth, 'factors') : null,
    passkeys: passkeys && passkeyPaths && user.factors?.includes('passkey') === true
      ? { user: passkeys.userDetails(user), script: passkeyPaths.script }
      : null,
    others: offered(auth, others, { ...saved, link: 'true' }),
    sessions: listedSessions === null ? null : await sessionsOfUser(auth, user.userId, request),
    saved,
    sent: after({ done: 'sent' }),
    left: { next: signInPath(auth, request), error_next: here },
    paths: {
      rename: pathOf(auth, 'pages/name'),
      removeMethod: pathOf(auth, 'pages/unlink'),
      changeEmail: pathIf(hasMails(auth, 'changeEmail'), 'local/change-email'),
      verifyEmail: pathIf(hasMails(auth), 'local/verify-email'),
      changePassword: pathIf(hasMails(auth, 'changePassword'), 'local/change-password'),
      setPassword: pathIf(hasMails(auth, 'setPassword'), 'local/set-password'),
      endSession: pathIf(local?.accountRoutes.sessionsEnd === true, 'local/sessions/end'),
      deleteAccount: pathIf(hasMails(auth, 'deleteAccount'), 'local/delete-account'),
      logout: pathOf(auth, 'logout')
    }
  })
})

/** The page on which the signed-in user authenticates again. */
const confirm = page({ path: '/pages/confirm' }, async (auth, { request, reply, texts, next, needsFactor }) => {
  const present = await currentUser(auth, request)
  if (present === null) return redirected(reply, signInPath(auth, request, next))
  const { user: { email }, record: { principal } } = present
  const methods = methodsIn(auth, present)
  const targets = targetsOf(auth, 'pages/confirm', { next, second_factor: needsFactor ? 'true' : null })
  const names = auth.providers.map(({ name }) => name)
  const proving = needsFactor ? [] : names.filter(name => methods.includes(name))
  return confirmPage(texts, {
    targets,
    user: nameOf(principal),
    email,
    action: pathOf(auth, 'local/reauthenticate'),
    asksCode: methods.includes('totp') || methods.includes('recovery'),
    asksPassword: !needsFactor && methods.includes('password') && hasLocal(auth),
    passkey: methods.includes('passkey') ? auth.passkeyPaths : null,
    providers: offered(auth, proving, { ...targets, reauthenticate: 'true' }),
    logout: pathOf(auth, 'logout'),
    signIn: signInPath(auth, request, next)
  })
})

/** The page on which the signed-in user sees and changes their factors. */
const factors = page({ path: '/pages/factors', when: hasFactors }, async (auth, view) => {
  const { request, reply, texts, next, isLost } = view
  const here = pathOfPage(auth, 'factors', next)
  const present = await currentUser(auth, request)
  if (present === null) return redirected(reply, signInPath(auth, request, here))
  const { factors: { secondFactor, passkeys }, passkeyPaths, pages } = auth
  const ofLost = withQuery(pathOf(auth, 'pages/factors'), { next, lost: 'true' })
  const missing = missingAuthentication(auth, present)
  const mayLose = missing !== null && await maySendMailCode(auth, present)
  const ofCodes = (route: string): string | null => secondFactor === null ? null : pathOf(auth, route)
  const registerPasskey = pathOf(auth, 'local/passkeys/register')
  if (isLost && mayLose) {
    return enrolPage(texts, {
      action: ofCodes('local/totp/enroll'),
      targets: { next: here, error_next: ofLost, lost: 'true' },
      isRequired: false,
      asksMailCode: true,
      isMailed: await isCodeMailed(request),
      passkey: passkeyPaths && { ...passkeyPaths, register: registerPasskey },
      leave: { logout: pathOf(auth, 'logout'), next: here }
    })
  }
  return factorsPage(texts, {
    factors: await listFactors(auth.accounts, present.user.userId),
    passkeys: passkeys && passkeyPaths && {
      ...passkeyPaths,
      user: passkeys.userDetails(present.user),
      paths: {
        register: registerPasskey,
        rename: pathOf(auth, 'local/passkeys/rename'),
        remove: pathOf(auth, 'local/passkeys/remove')
      }
    },
    confirm: missing && pages.forStep(request, 'reauthenticate', here, missing.length > 0),
    lost: mayLose ? ofLost : null,
    account: pathOfPage(auth, 'account'),
    saved: { next: next ?? withQuery(here, { done: 'saved' }), error_next: here },
    paths: {
      enrol: ofCodes('local/totp/enroll'),
      removeApp: ofCodes('local/totp/remove'),
      newCodes: ofCodes('local/recovery-codes')
    }
  })
})

/** The pages and what users do on that of their account, in the order of the document. */
export const PAGE_ACTS: readonly Act[] = [
  signIn, register, forgotPassword, linkSent, confirm, account, factors, rename, removeMethod
]

/** The path of a page, with the page after a success. */
function pathOfPage (
  auth: AuthContext, name: 'sign-in' | 'register' | 'forgot-password' | 'link-sent' | 'account' | 'factors',
  next: string | null = null
): string {
  return withQuery(pathOf(auth, `pages/${name}`), { next })
}

/** The page on which users sign in: the application's, if it has one. */
function signInPath (auth: AuthContext, request: FastifyRequest, next: string | null = null): string {
  return auth.pages.loginWith(request, next) ?? pathOfPage(auth, 'sign-in', next)
}

function offered (
  auth: AuthContext, names: readonly string[], query: Record<string, string | null>
): OfferedProvider[] {
  return names.map(name => ({ label: providerLabel(name), href: withQuery(pathOf(auth, `${name}/login`), query) }))
}

function canRegister ({ local }: AuthContext): boolean {
  return local !== null && local.registration !== null
}

function minLengthOf ({ local }: AuthContext): number {
  return local?.minPasswordLength ?? 0
}

function nameOf ({ userId, claims: { name, email } }: Principal): string {
  return name ?? email ?? userId
}

function textIn (value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
