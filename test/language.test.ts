import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')

/** The texts that are held to the language of CONTRIBUTING.md. */
const TEXTS = [
  'lib', 'docs', 'examples', 'README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md'
]

/** Words that hide who acts, instead of the nouns that CONTRIBUTING.md names. */
const VAGUE = [
  /\b(?:he|him|his|himself|she|her|hers|whoever|whomever|whom)\b/gi,
  /\b(?:somebody|someone|nobody|anybody|everybody)\b/gi,
  /\b(?:of ours|of his|of theirs|ways? in|what is none|(?<!\bthere |^)(?:is|are) no (?!longer|more))\b/gi,
  /\b(?:takes? away|taken away|took away)\b/gi
]

/** Text around a word of the list that is kept: names of persons, code that people copy. */
const EXCEPTIONS: readonly RegExp[] = []

/** Passwords of others, which are words of any kind. */
const LISTS = ['lib/passwords/common-passwords.ts', 'lib/passwords/common-words.ts']

const FILES = filesOf(...TEXTS).filter(file => /\.(?:ts|js|md)$/.test(file) && !LISTS.includes(file))
const TESTS = filesOf('test').filter(file => /\.(?:m|c)?[tj]s$/.test(file))

/** Returns the files of folders that git would commit. */
function filesOf (...paths: string[]): string[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], {
    cwd: ROOT,
    encoding: 'utf8'
  })
  return listed.split('\n').filter(file => existsSync(join(ROOT, file)) && file !== '')
}

/** Returns the vague words of a text, each with the number of its line. */
function vagueWords (text: string): string[] {
  return text.split('\n').flatMap((line, index) => {
    const kept = EXCEPTIONS.reduce((rest, exception) => rest.replace(exception, ''), line)
    const words = VAGUE.flatMap(pattern => Array.from(kept.matchAll(pattern), ([word]) => word))
    return words.map(word => `${index + 1}: ${word.trim()}`)
  })
}

/** Returns the names that are written in the calls that define tests. */
function namesOfTests (text: string): string[] {
  return Array.from(text.matchAll(/\b(?:test|describe|scene|withEverySessionStore)\((?:t, )?(['"`])(.+)\1/g), ([, , name = '']) => name)
}

t.test('the texts of the library name who acts', async t => {
  t.ok(FILES.includes('SECURITY.md') && FILES.includes('lib/errors.ts'))

  const vague = FILES.flatMap(file => {
    return vagueWords(readFileSync(join(ROOT, file), 'utf8')).map(found => `${file}:${found}`)
  })

  t.strictSame(vague, [])
})

t.test('words that hide who acts are found, with their line', async t => {
  const text = 'Whoever has no link\nis signed out by the plugin,\nand this is no way in. It is no longer one of his.'

  t.strictSame(vagueWords(text), ['1: Whoever', '3: his', '3: is no', '3: way in', '3: of his'])
})

t.test('the names of tests name who acts', async t => {
  const names = TESTS.flatMap(file => namesOfTests(readFileSync(join(ROOT, file), 'utf8')))
  t.ok(names.includes('the names of tests name who acts'))

  const vague = names.filter(name => vagueWords(name).length > 0)

  t.strictSame(vague, [])
})

t.test('no line of a test has more than 160 columns', async t => {
  const long = TESTS.flatMap(file => {
    const lines = readFileSync(join(ROOT, file), 'utf8').split('\n')
    return lines.flatMap((line, index) => line.length > 160 ? [`${file}:${index + 1}`] : [])
  })

  t.strictSame(long, [])
})
