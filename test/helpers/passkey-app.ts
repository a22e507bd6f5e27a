import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import type { AuthPluginOptions, LocalIdentityProviderOptions } from '../../lib/index.js'
import { Passkeys, type PasskeysOptions } from '../../lib/passkeys.js'
import { type Lies, SoftwareAuthenticator } from '../fakes/authenticator.js'
import type { Browser } from './browser.js'
import { DATA_SECRET } from './factor-app.js'
import { BASE_URL, type MailApp, startMailApp } from './mail-app.js'

/** An application with passkeys, passwords, two providers and mails. */
export async function startPasskeyApp (
  t: Test,
  options: AuthPluginOptions = {},
  local: LocalIdentityProviderOptions = {},
  passkeys: Partial<PasskeysOptions> = {}
): Promise<MailApp> {
  return startMailApp(t, { dataSecret: DATA_SECRET, passkeys: new Passkeys({ name: 'Shop', ...passkeys }), ...options }, local)
}

export type Ceremony = 'register' | 'create' | 'login' | 'factor'
type Options = Readonly<Record<string, unknown>>

/** A device with one passkey for the application. */
export function newDevice (
  device: Partial<ConstructorParameters<typeof SoftwareAuthenticator>[0]> = {}
): SoftwareAuthenticator {
  return new SoftwareAuthenticator({ origin: BASE_URL, ...device })
}

/** Begins a ceremony. */
export async function optionsAt (browser: Browser, ceremony: Ceremony): Promise<Options> {
  const answer = await browser.post('/auth/local/passkeys/options', { for: ceremony })
  if (answer.statusCode !== 200) throw new Error(`options answered ${answer.statusCode} ${answer.body}`)
  return answer.json()
}

/** Adds the passkey of a device to the account of the signed-in user. */
export async function addAt (
  browser: Browser, device: SoftwareAuthenticator, { lies, ...fields }: { lies?: Lies, name?: string, mailCode?: string } = {}
): Promise<LightMyRequestResponse> {
  const response = device.create(await optionsAt(browser, 'register'), lies)
  return browser.post('/auth/local/passkeys/register', { response, ...fields })
}

/** Signs in by the passkey of a device. */
export async function signInBy (browser: Browser, device: SoftwareAuthenticator, lies: Lies = {}): Promise<LightMyRequestResponse> {
  return browser.post('/auth/local/passkeys/login', { response: device.get(await optionsAt(browser, 'login'), lies) })
}

/** Finishes a sign-in that waits, by the passkey of a device. */
export async function finishBy (browser: Browser, device: SoftwareAuthenticator): Promise<LightMyRequestResponse> {
  return browser.post('/auth/local/second-factor', { response: device.get(await optionsAt(browser, 'factor')) })
}

/** Authenticates the signed-in user again, by the passkey of a device. */
export async function proveBy (browser: Browser, device: SoftwareAuthenticator): Promise<LightMyRequestResponse> {
  return browser.post('/auth/local/reauthenticate', { response: device.get(await optionsAt(browser, 'factor')) })
}
