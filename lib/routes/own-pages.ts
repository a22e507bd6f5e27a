/** The pages of the option `pages`. They are loaded only with it. */
import type { FastifyRequest } from 'fastify'
import { UnknownPasskey } from '../factors/passkey-ceremonies.js'
import { listFactors } from '../flows/factor-list.js'
import { isCodeMailed, maySendMailCode } from '../flows/enrolment.js'
import { methodsOf, missingAuthentication } from '../flows/methods.js'
import { removeMethod, rename } from '../flows/own-account.js'
import { presentPrincipal } from '../current-user/refresh.js'
import { sessionsOfUser } from '../flows/sessions.js'
import type { LocalIdentityProvider } from '../local-identity-provider.js'
import { recordIn } from '../session/record.js'
import { accountPage } from '../pages/account-page.js'
import { enrolPage, factorsPage } from '../pages/factor-pages.js'
import type { Page } from '../pages/page-layout.js'
import { providerLabel } from '../pages/provider-label.js'
import {
  type OfferedProvider, type Targets, confirmPage, forgotPasswordPage, linkSentPage, registerPage, signInPage,
  signedInPage
} from '../pages/sign-in-pages.js'
import type { PagesContext } from './context.js'
import { mountForm } from './form-route.js'
import { type PageOf, type View, mountPage, redirected, withQuery } from './page-route.js'

/** The name of a page below `/pages`. */
type PageName = 'sign-in' | 'register' | 'forgot-password' | 'link-sent' | 'account' | 'confirm' | 'factors'

/** Mounts the pages, and the two forms of the account that only they have. */
export function mountOwnPages (context: PagesContext, local: LocalIdentityProvider | null): void {
  const { pathOf, rules, providers, pages, listedSessions, channel, mailer, passkeyPaths } = context
  const { store } = rules
  const passkeys = rules.factors?.passkeys ?? null
  const asksToRemember = rules.remember !== null
  const minLength = local?.minPasswordLength ?? 0
  const registration = local?.registration ?? null
  const canRecover = local !== null && mailer !== null && local.accountRoutes.forgotPassword

  /** The path of a page, with the page after a success. */
  function pathOfPage (name: PageName, next: string | null = null): string {
    return withQuery(pathOf(`pages/${name}`), { next })
  }

  /** The page on which users sign in: the application's, if it has one. */
  function signInPath (request: FastifyRequest, next: string | null = null): string {
    return pages.loginWith(request, next) ?? pathOfPage('sign-in', next)
  }

  function targetsOf (name: PageName, next: string | null): Targets {
    return { next, error_next: pathOfPage(name, next) }
  }

  function offered (names: readonly string[], query: Record<string, string | null>): OfferedProvider[] {
    return names.map(name => ({ label: providerLabel(name), href: withQuery(pathOf(`${name}/login`), query) }))
  }

  const providerNames = providers.map(({ name }) => name)

  const PAGES: Readonly<Record<PageName, PageOf | null>> = {
    async 'sign-in' ({ request, texts, next, typed, failure }) {
      const principal = await presentPrincipal(request, store)
      if (principal !== null) {
        const { claims: { name, email }, userId } = principal
        return signedInPage(texts, {
          user: name ?? email ?? userId,
          next: pages.afterSuccess(request, next),
          logout: pathOf('logout'),
          after: pathOfPage('sign-in', next)
        })
      }
      const targets = targetsOf('sign-in', next)
      return signInPage(texts, {
        targets,
        providers: offered(providerNames, targets),
        login: local === null ? null : pathOf('local/login'),
        email: textIn(typed.email),
        asksToRemember,
        forgotPassword: canRecover ? pathOfPage('forgot-password', next) : null,
        register: registration === null ? null : pathOfPage('register', next),
        passkey: passkeys && passkeyPaths && {
          ...passkeyPaths,
          action: pathOf('local/passkeys/login'),
          unknown: failure?.cause instanceof UnknownPasskey
            ? { rpId: passkeys.relyingParty.rpId, credentialId: failure.cause.id }
            : null
        }
      })
    },

    register: registration !== null
      ? async ({ request, texts, next, typed }) => {
        const { verify } = registration
        // A page after the registration that says the same for each address.
        const after = verify === 'later' ? next : pathOfPage('link-sent', next)
        return registerPage(texts, {
          targets: { ...targetsOf('register', next), next: after },
          action: pathOf('local/register'),
          email: textIn(typed.email),
          name: textIn(typed.name),
          minLength,
          isFirst: verify === 'first',
          asksToRemember: asksToRemember && verify === 'later',
          signIn: signInPath(request, next)
        })
      }
      : null,

    'forgot-password': canRecover
      ? async ({ request, texts, next, typed }) => forgotPasswordPage(texts, {
        targets: { ...targetsOf('forgot-password', next), next: pathOfPage('link-sent', next) },
        action: pathOf('local/forgot-password'),
        email: textIn(typed.email),
        signIn: signInPath(request, next)
      })
      : null,

    'link-sent': mailer === null
      ? null
      : async ({ request, texts, next }) => linkSentPage(texts, { signIn: signInPath(request, next) }),

    async confirm ({ request, reply, texts, next, needsFactor }) {
      const principal = await presentPrincipal(request, store)
      if (principal === null) return redirected(reply, signInPath(request, next))
      const { userId, claims: { name, email } } = principal
      const [user, methods] = [await store.findUser({ userId }), await methodsOf(rules, userId, providers)]
      const targets = {
        next, error_next: withQuery(pathOf('pages/confirm'), { next, second_factor: needsFactor ? 'true' : null })
      }
      const proving = needsFactor ? [] : providerNames.filter(name => methods.includes(name))
      return confirmPage(texts, {
        targets,
        user: name ?? email ?? userId,
        email: user?.email ?? null,
        action: pathOf('local/reauthenticate'),
        asksCode: methods.includes('totp') || methods.includes('recovery'),
        asksPassword: !needsFactor && methods.includes('password') && local !== null,
        passkey: methods.includes('passkey') ? passkeyPaths : null,
        providers: offered(proving, { ...targets, reauthenticate: 'true' }),
        logout: pathOf('logout'),
        signIn: signInPath(request, next)
      })
    },

    async account ({ request, reply, texts }) {
      const principal = await presentPrincipal(request, store)
      const user = principal === null ? null : await store.findUser({ userId: principal.userId })
      if (user === null) return redirected(reply, signInPath(request, pathOfPage('account')))
      const links = await store.links(user.userId)
      const has = (name: string): boolean => links.some(({ provider }) => provider === name)
      const here = pathOfPage('account')
      const after = (params: Record<string, string>): Targets => ({ next: withQuery(here, params), error_next: here })
      const routes = mailer === null ? null : local?.accountRoutes
      const sessions = listedSessions === null
        ? null
        : await sessionsOfUser({ store, channel, listedSessions }, user.userId, request)
      const left = { next: signInPath(request), error_next: here }
      return accountPage(texts, {
        user: { name: user.name, email: user.email, isVerified: user.emailVerified },
        hasPassword: has('local'),
        minLength,
        methods: links.map(({ provider, claims: { email = null } }) => ({
          provider, label: provider === 'local' ? null : providerLabel(provider), email
        })),
        factors: rules.factors === null ? null : pathOfPage('factors'),
        passkeys: passkeys && passkeyPaths && user.factors?.includes('passkey') === true
          ? { user: passkeys.userDetails(user), script: passkeyPaths.script }
          : null,
        others: offered(providerNames.filter(name => !has(name)), { ...after({ done: 'saved' }), link: 'true' }),
        sessions,
        saved: after({ done: 'saved' }),
        sent: after({ done: 'sent' }),
        left,
        paths: {
          rename: pathOf('pages/name'),
          removeMethod: pathOf('pages/unlink'),
          changeEmail: routes?.changeEmail === true ? pathOf('local/change-email') : null,
          verifyEmail: routes === null ? null : pathOf('local/verify-email'),
          changePassword: routes?.changePassword === true ? pathOf('local/change-password') : null,
          setPassword: routes?.setPassword === true ? pathOf('local/set-password') : null,
          endSession: local?.accountRoutes.sessionsEnd === true ? pathOf('local/sessions/end') : null,
          deleteAccount: routes?.deleteAccount === true ? pathOf('local/delete-account') : null,
          logout: pathOf('logout')
        }
      })
    },

    factors: rules.factors === null ? null : factorsView
  }

  /** What the signed-in user sees of their factors. */
  async function factorsView ({ request, reply, texts, next, isLost }: View): Promise<Page | null> {
    const here = pathOfPage('factors', next)
    const ofLost = withQuery(pathOf('pages/factors'), { next, lost: 'true' })
    const record = await presentPrincipal(request, store) === null ? null : recordIn(request.session)
    const user = record === null ? null : await store.findUser({ userId: record.principal.userId })
    if (record === null || user === null || rules.factors === null) return redirected(reply, signInPath(request, here))
    const missing = missingAuthentication(user, record, rules.factors)
    const mayLose = missing !== null && await maySendMailCode(user, record, rules.factors)
    const routes = rules.factors.secondFactor === null ? null : pathOf
    if (isLost && mayLose) {
      return enrolPage(texts, {
        action: routes?.('local/totp/enroll') ?? null,
        targets: { next: here, error_next: ofLost, lost: 'true' },
        isRequired: false,
        asksMailCode: true,
        isMailed: await isCodeMailed(request),
        passkey: passkeyPaths && { ...passkeyPaths, register: pathOf('local/passkeys/register') },
        leave: { logout: pathOf('logout'), next: here }
      })
    }
    return factorsPage(texts, {
      factors: await listFactors(rules.accounts, user.userId),
      passkeys: passkeys && passkeyPaths && {
        ...passkeyPaths,
        user: passkeys.userDetails(user),
        paths: {
          register: pathOf('local/passkeys/register'),
          rename: pathOf('local/passkeys/rename'),
          remove: pathOf('local/passkeys/remove')
        }
      },
      confirm: missing && pages.forStep(request, 'reauthenticate', here, missing.length > 0),
      lost: mayLose ? ofLost : null,
      account: pathOfPage('account'),
      saved: { next: next ?? withQuery(here, { done: 'saved' }), error_next: here },
      paths: {
        enrol: routes?.('local/totp/enroll') ?? null,
        removeApp: routes?.('local/totp/remove') ?? null,
        newCodes: routes?.('local/recovery-codes') ?? null
      }
    })
  }

  for (const [name, pageOf] of Object.entries(PAGES)) {
    if (pageOf !== null) mountPage(context, { path: `pages/${name}`, name }, pageOf)
  }

  mountForm(context, {
    path: '/pages/name',
    summary: 'Change the name of the signed-in user',
    user: 'signed-in',
    fields: { name: { type: 'string', maxLength: 1000, description: 'An empty one removes it' } },
    required: ['name'],
    refuses: ['unauthenticated']
  }, async ({ request, fields: { name } }) => rename(request, rules, name))

  mountForm(context, {
    path: '/pages/unlink',
    summary: 'Remove a sign-in method of the signed-in user',
    description: 'The last authentication must be less than ten minutes old. All other sessions of the user end.',
    user: 'signed-in',
    fields: { provider: { type: 'string', maxLength: 64, description: 'The name of the provider, or `local`' } },
    required: ['provider'],
    refuses: ['unauthenticated', 'reauthenticate', 'last_link', 'not_found']
  }, async ({ request, fields: { provider } }) => {
    return removeMethod(request, { ...rules, channel }, provider)
  })
}

function textIn (value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
