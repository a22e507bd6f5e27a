import type { FastifyRequest } from 'fastify'
import type { UnprovenMethods } from '../../accounts/sign-in.js'
import type { Principal } from '../../session/record.js'
import { type Mountpoint, pathOf, routeOfProvider, startPathOf } from '../../core/act.js'
import type { AuthContext } from '../../core/context.js'
import { withQuery } from '../../core/redirects.js'
import {
  type Content, type Html, type PageForm, type Texts, action, button, dateIn, filled, html, item
} from '../../core/pages/elements.js'
import { providerLabel } from '../../core/pages/lead-to.js'

/** The path of a page of the plugin, with the page after a success. */
export function pathOfPage (
  auth: Mountpoint, name: 'sign-in' | 'register' | 'forgot-password' | 'link-sent' | 'account' | 'factors',
  next: string | null = null
): string {
  return withQuery(pathOf(auth, `pages/${name}`), { next })
}

/** The page on which users sign in: the application's, if it has one. */
export function signInPath (auth: AuthContext, request: FastifyRequest, next: string | null = null): string {
  return auth.redirects.loginWith(request, next) ?? pathOfPage(auth, 'sign-in', next)
}

/** Makes the links that start a sign-in at a provider; `text` names it in braces. */
export function signInLinks (
  auth: Mountpoint & Pick<AuthContext, 'providers' | 'providerLabels'>, text: string, names: readonly string[],
  query: Readonly<Record<string, string | null>>
): Html[] {
  return names.map(name => {
    const label = filled(text, { provider: providerLabel(auth, name) })
    return button(withQuery(pathOf(auth, routeOfProvider(name, 'login')), query), label, 'plain', iconOf(auth, name))
  })
}

/**
 * Makes the buttons that begin a linking or a reauthentication at a provider, which a link must
 * not: a redirect would do the same without the user.
 */
export function providerButtons (
  auth: AuthContext, text: string, names: readonly string[], hidden: Readonly<Record<string, string | null>>
): Content {
  return names.map(name =>
    action(
      startPathOf(auth, name),
      hidden,
      filled(text, { provider: providerLabel(auth, name) }),
      { look: 'plain', icon: iconOf(auth, name) }
    ))
}

export function hasIcons ({ providers }: Pick<AuthContext, 'providers'>): boolean {
  return providers.some(({ icon }) => icon !== undefined)
}

function iconOf ({ providers }: Pick<AuthContext, 'providers'>, name: string): string | undefined {
  return providers.find(provider => provider.name === name)?.icon
}

export function nameOf ({ userId, claims: { name, email } }: Principal): string {
  return name ?? email ?? userId
}

/**
 * Lists what an account has from before its address was proven, to keep or to remove by buttons;
 * nothing where there is nothing. No text is one that the account's maker chose.
 */
export function existingParts (
  auth: Pick<AuthContext, 'providers' | 'providerLabels'>, { language, common, factors, links }: Texts,
  unproven: UnprovenMethods | null
): Pick<PageForm, 'choice'> & { list: Content } {
  if (!unproven?.keep) return { list: null }
  const { app: totp, recoveryTitle: recovery, passkey } = factors
  const labels = { password: common.password, totp, recovery, passkey }
  const items = unproven.methods.map(({ kind, provider, createdAt }) => {
    const date = createdAt && filled(factors.added, { date: dateIn(language, createdAt) })
    const label = kind === 'provider' ? providerLabel(auth, String(provider)) : labels[kind]
    return item(html`${label} <small>${date}</small>`)
  })
  return {
    list: [html`<p>${links.existingText}</p>`, html`<ul>${items}</ul>`],
    choice: { name: 'existing', value: unproven.keep, other: 'remove', otherSubmit: links.existingRemove }
  }
}

/** What the user typed into a text field of the form that failed. */
export function textIn (value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
