import { withoutUndefined } from '../base/defaults.js'
import { unacceptable } from './failures.js'
import type { ProviderOptions, SignInParameters } from './provider.js'

/**
 * Returns what a sign-in demands: of `authorizationParams`, which holds for every sign-in, and of
 * this one, the stricter. A link with other parameters must not loosen what the operator demands.
 */
export function demandsOf (
  { max_age: age, acr_values: values, prompt: shown }: NonNullable<ProviderOptions['authorizationParams']>,
  { maxAge, acrValues, prompt = shown }: SignInParameters
): Pick<SignInParameters, 'maxAge' | 'acrValues' | 'prompt'> {
  const always = values?.split(' ')
  const classes = always && acrValues ? acrValues.filter(value => always.includes(value)) : acrValues ?? always
  if (classes?.length === 0) {
    throw unacceptable('acrValues of signInUrl has none of the acr_values in authorizationParams')
  }
  // `none` shows nothing, and cannot stand beside another value (OpenID Connect Core 3.1.2.1).
  const asked = prompt === 'none' ? shown ?? prompt : prompt
  const isLoginLost = asksToLogIn(shown) && !asksToLogIn(asked)
  return withoutUndefined({
    maxAge: age === undefined ? maxAge : Math.min(Number(age), maxAge ?? Infinity),
    acrValues: classes,
    prompt: isLoginLost ? `login ${asked}` : asked
  })
}

function asksToLogIn (prompt: string | undefined): boolean {
  return prompt?.split(' ').includes('login') === true
}
