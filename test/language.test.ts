import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')

/** The texts that are held to the language of CONTRIBUTING.md. */
const TEXTS = [
  'lib', 'docs', 'examples', 'README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md'
]

/** What stood for the terms of the field, and the term to write. */
const TERMS: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bEndings(?:Listener)?\b|svc_auth_endings/g, 'revocation'],
  [/\bTryCounts\b|svc_auth_counts|\b(?:many|of|the|all|more) tries\b/g, 'attempt'],
  [/\b(?:Session|Entry|Row)Keeper\b/g, 'SessionBackend, ExpressSessions, RowSessions'],
  [/\b(?:New)?(?:Email|Mail)Proof\b|\bredeem(?:s|ed|ing)? (?:a |the )?(?:link|proof|token)s?\b/g, 'MailTokenClaims, use a link'],
  [/disown/gi, 'releaseEmail, not_me, email-released'],
  [/\bStanding\b/g, 'AccountStatus'],
  [/\bArrival\b|\binterface Person\b/g, 'AuthenticatedUser, AdmittedUser'],
  [/\bPATIENCE\w*\b|\bpatience\b|\bSilenceError\b|\binTime\b/gi, 'TIMEOUT_MS, TimeoutError, withTimeout, time limit'],
  [/\bnew Turns\b|\bundisturbed\b|\bovertaken\b/g, 'KeyedMutex, withRetry, serializationFailure'],
  [/\bwords of the (?:HTTP )?status\b/gi, 'HTTP reason phrase'],
  [/\bprov(?:e|es|ed|en|ing)(?: again)? who (?:they|you|the)\b|\bfurther proof\b/gi, 'authenticate, sign in again'],
  [/\b(?:a say in|works no longer than|the ends of sessions)\b/gi, 'see the terms of CONTRIBUTING.md'],
  // A user is "the user" and "they".
  [/\b(?:he|him|his|himself|whoever|whomever)\b/gi, 'the user, the client, the attacker'],
  [/\b(?:of ours|of his|ways? in(?= to an account|[.,;]|$))\b/gi, 'ours, sign-in method'],
  [/\b(?:takes? away|taken away|took away)\b/gi, 'remove']
]

/** Passwords of others, which are words of any kind. */
const LISTS = ['lib/features/password/common-passwords.ts', 'lib/features/password/common-words.ts']

/** The tests beside what they test. */
const BESIDE = /^lib\/.*\.(?:test|long)\.ts$/

const FILES = filesOf(...TEXTS).filter(file => /\.(?:ts|jsx?|md)$/.test(file) && !BESIDE.test(file) && !LISTS.includes(file))
const TESTS = [...filesOf('test').filter(file => /\.(?:m|c)?[tj]s$/.test(file)), ...filesOf('lib').filter(file => BESIDE.test(file))]

/** Returns the files of folders that git would commit. */
function filesOf (...paths: string[]): string[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], {
    cwd: ROOT,
    encoding: 'utf8'
  })
  return listed.split('\n').filter(file => existsSync(join(ROOT, file)) && file !== '')
}

/** Returns the words of a text for which there is a term, each with the number of its line. */
function formerWords (text: string): string[] {
  return text.split('\n').flatMap((line, index) => {
    return TERMS.flatMap(([pattern, term]) => Array.from(line.matchAll(pattern), ([word]) => `${index + 1}: ${word}: ${term}`))
  })
}

/** Returns the names that are written in the calls that define tests. */
function namesOfTests (text: string): string[] {
  return Array.from(text.matchAll(/\b(?:test|describe|scene|withEverySessionStore)\((?:t, )?(['"`])(.+)\1/g), ([, , name = '']) => name)
}

t.test('the texts of the library use the terms of the field', async t => {
  t.ok(FILES.includes('SECURITY.md') && FILES.includes('lib/errors.ts'))

  const former = FILES.flatMap(file => {
    return formerWords(readFileSync(join(ROOT, file), 'utf8')).map(found => `${file}:${found}`)
  })

  t.strictSame(former, [])
})

t.test('words for which there is a term are found, with their line', async t => {
  const text = 'The client tries again.\nWhoever has his link redeems a link\nwithin the patience of the Endings.'

  t.strictSame(formerWords(text).map(found => found.replace(/: [^:]*$/, '')), [
    '2: redeems a link', '2: Whoever', '2: his', '3: Endings', '3: patience'
  ])
})

t.test('the names of tests use the terms of the field', async t => {
  const names = TESTS.flatMap(file => namesOfTests(readFileSync(join(ROOT, file), 'utf8')))
  t.ok(names.includes('the names of tests use the terms of the field'))

  const former = names.flatMap(formerWords)

  t.strictSame(former, [])
})

t.test('no line of a test has more than 160 columns', async t => {
  const long = TESTS.flatMap(file => {
    const lines = readFileSync(join(ROOT, file), 'utf8').split('\n')
    return lines.flatMap((line, index) => line.length > 160 ? [`${file}:${index + 1}`] : [])
  })

  t.strictSame(long, [])
})
