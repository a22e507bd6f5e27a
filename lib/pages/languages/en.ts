/** The model of each language. */
const english = {
  /** The language tag (BCP 47). */
  language: 'en',
  /** The direction of the script. */
  direction: 'ltr',
  common: {
    email: 'E-mail',
    password: 'Password',
    newPassword: 'New password',
    currentPassword: 'Current password',
    passwordRule: 'At least {count} characters',
    name: 'Name',
    optionalName: 'Name (optional)',
    role: 'Role',
    noRole: 'None',
    remember: 'Keep me signed in',
    continue: 'Continue',
    back: 'Back',
    signOut: 'Sign out',
    saved: 'Your change was saved.',
    sent: 'We sent you an e-mail. Follow the link in it.',
    wait: 'Try again in {time}.'
  },
  signIn: {
    title: 'Sign in',
    withProvider: 'Continue with {provider}',
    or: 'or',
    forgot: 'Forgot your password?',
    register: 'Create an account',
    signedInAs: 'You are signed in as {user}.',
  },
  register: {
    signIn: 'Sign in instead',
    firstText: 'We send a link to your e-mail address. It leads to the next step.',
  },
  forgotPassword: {
    title: 'Reset your password',
    text: 'Enter your e-mail address. If it belongs to an account, we send you a link to choose a new password.',
    submit: 'Send the link',
    sentTitle: 'Check your inbox',
    sentText: 'If an e-mail is due, it arrives within a few minutes. Check your spam folder, too.'
  },
  confirm: {
    title: 'Confirm that it’s you',
    text: 'Sign in again as {user} to continue.',
    submit: 'Confirm',
    signOut: 'Sign in as another user'
  },
  account: {
    title: 'Your account',
    nameSubmit: 'Save name',
    confirmed: 'confirmed',
    unconfirmed: 'not confirmed',
    sendAgain: 'Send the link again',
    newEmail: 'New e-mail address',
    emailSubmit: 'Change e-mail',
    passwordSubmit: 'Change password',
    setPassword: 'Set a password',
    methodsTitle: 'Sign-in methods',
    onlyMethod: 'Your only sign-in method',
    remove: 'Remove',
    removeMethod: 'Remove {provider}',
    add: 'Add {provider}',
    devicesTitle: 'Devices',
    thisDevice: 'this device',
    unknownDevice: 'Unknown device',
    lastUsed: 'Last used on {date}',
    endSession: 'Sign out on {device}',
    signOutEverywhere: 'Sign out everywhere',
    deleteText: 'Your account and its data are deleted for good.',
    deleteSubmit: 'Delete account',
  },
  factors: {
    title: 'Sign-in security',
    secondTitle: 'One more step',
    codeText: 'Enter the code that your authenticator app shows, or one of your recovery codes.',
    code: 'Code',
    trust: 'Don’t ask again on this browser for {time}',
    usePasskey: 'Continue with a passkey',
    noScript: 'Passkeys need JavaScript. Turn it on in your browser to use them.',
    setUp: 'Set up an authenticator app',
    requiredTitle: 'Set up a second sign-in step to continue',
    requiredText: 'This application requires a second step when you sign in.',
    appText: 'Add {issuer} to your authenticator app. Then enter the six-digit code that the app shows.',
    qrCode: 'QR code for the authenticator app',
    openApp: 'Open the app on this device',
    key: 'Key to enter by hand:',
    appCode: 'Code from the app',
    mailCode: 'Code from the e-mail',
    mailText: 'We sent it to your e-mail address.',
    recoveryTitle: 'Recovery codes',
    recoveryText: 'If you can’t use your authenticator app, each of these codes replaces it once. ' +
      'Save them in a safe place now: you won’t see them again.',
    confirmText: 'To change anything here, sign in again first.',
    app: 'Authenticator app',
    added: 'Added on {date}',
    codesLeft: 'Codes left: {count}',
    newCodes: 'Create new codes',
    newCodesText: 'New codes replace the ones that you have.',
    passkeys: 'Your passkeys',
    passkeysText: 'With a passkey you sign in by fingerprint, face or the screen lock of your device.',
    passkeyName: 'Name of the passkey',
    rename: 'Rename',
    addPasskey: 'Add a passkey'
  },
  links: {
    resetText: 'This signs you out on all devices. Then sign in with the new password.',
    resetSubmit: 'Set password',
    verifyText: 'An account was created with this e-mail address.',
    verifyTextOf: 'An account was created with this e-mail address on {date}.',
    itWasYou: 'It was you',
    verifySubmit: 'Confirm the address',
    itWasNotYou: 'It was not you',
    releaseField: 'If you didn’t create this account, enter your e-mail address',
    releaseSubmit: 'Remove the address',
    changeText: '{to} becomes the e-mail address of your account, in place of {email}.',
    changePassword: 'Enter your password, or sign in first and open the link again.',
    over: 'A link works once and for a limited time. Open the newest one, or ask for a new one.'
  },
  titles: {
    register: 'Create an account',
    'verify-email': 'Confirm your e-mail address',
    'reset-password': 'Choose a new password',
    'change-email': 'Confirm your new e-mail address'
  },
  errors: {
    invalid: 'The e-mail or the password is wrong.',
    exists: 'An account with this e-mail already exists. Sign in instead.',
    invalid_email: 'This is not a valid e-mail address.',
    not_this_address: 'This is not the address that the link was sent to.',
    weak_password: 'This password is too short or too long. Choose another one.',
    breached_password: 'This password is known from a data breach. Choose another one.',
    invalid_request: 'Something is missing in this form. Check it and try again.',
    cross_origin: 'This request came from another website. Try again on this page.',
    rate_limited: 'Too many attempts.',
    busy: 'We are busy right now. Try again in a moment.',
    unavailable: 'Accounts can’t be reached right now. Try again later.',
    invalid_state: 'This sign-in has expired. Start again.',
    access_denied: 'The sign-in was cancelled.',
    provider_error: 'The sign-in failed at the provider. Try again.',
    provider_unavailable: 'The provider can’t be reached right now. Try again later.',
    account_exists: 'An account with this e-mail already exists. Sign in the way you did before.',
    already_linked: 'This sign-in method belongs to another account.',
    invalid_token: 'This link has expired or was already used.',
    unauthenticated: 'Sign in first.',
    forbidden: 'You may not do this.',
    reauthenticate: 'Sign in again to continue.',
    second_factor_required: 'This sign-in needs a second step. Enter a code, or use a passkey.',
    second_factor_missing: 'This needs a second sign-in step. Set one up first.',
    invalid_code: 'This code is wrong, has expired or was already used. Enter a new one.',
    too_many: 'You can’t add any more. Remove one first.',
    last_link: 'This is your only sign-in method. Add another one first.',
    user_in_use: 'This account can’t be deleted yet, because other data still refers to it.',
    not_found: 'This no longer exists.',
    blocked: 'This account is blocked.',
    unverified: 'Confirm your e-mail address first. We sent you a link.',
    other: 'The sign-in was refused.'
  }
} as const

/** The same texts in another language. */
type SameTexts<Part> = { readonly [Name in keyof Part]: Part[Name] extends string ? string : SameTexts<Part[Name]> }

/**
 * What the pages say in one language, as `en` says it: a language without one of its texts does not
 * compile. Names in braces are replaced and must stay.
 */
export type Texts = SameTexts<Omit<typeof english, 'direction'>> & {
  /** The direction of the script. */
  readonly direction: 'ltr' | 'rtl'
}

/** The pages in English. */
export const en: Texts = english
