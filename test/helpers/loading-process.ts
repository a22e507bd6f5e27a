import { registerHooks } from 'node:module'

/** Whether the library was loaded when a process had passkeys, and after it was told to load it. */
export interface LibraryLoaded {
  before: boolean
  after: boolean
}

// As a program: it makes a passkey, which must print nothing. A static import would be loaded before the hook is there.
let isLoaded = false
registerHooks({
  load (url, context, nextLoad) {
    isLoaded ||= url.includes('/node_modules/@simplewebauthn/server/')
    return nextLoad(url, context)
  }
})

const { Passkeys } = await import('../../lib/passkeys.js')
const { readResponse } = await import('../../lib/features/passkeys/ceremonies.js')
const { SoftwareAuthenticator } = await import('../fakes/authenticator.js')
const origin = 'https://app.example'
const ceremonies = new Passkeys({ name: 'Shop' }).ceremonies({ baseUrl: origin, trustedOrigins: new Set() })
const before = isLoaded
await ceremonies.preload()
const after = isLoaded

const { challenge, options } = ceremonies.registrationOptions({ userId: crypto.randomUUID(), email: null, name: 'Ada' }, [])
const response = readResponse(new SoftwareAuthenticator({ origin }).create(options))
if (response !== null) await ceremonies.verifyRegistration(response, { challenge, name: null })
process.send?.({ before, after } satisfies LibraryLoaded)
