import { hkdfSync } from 'node:crypto'
import t from 'tap'
import { dataSecretsOf, derivedKey, requiredDataSecrets, secretsOf } from '../lib/secrets.js'
import { setEnv } from './helpers/environment.js'

const SETTING = 'A_SECRET_OF_THE_TESTS'
const SECRET = 'a secret of exactly 32 characters'.slice(0, 32)

const OF_SETTING = 'a-setting-with-more-than-32-characters'

t.test('a secret of 32 characters is taken', async t => {
  t.strictSame(secretsOf(SECRET, 'secret', SETTING), [SECRET])
})

t.test('each secret of a list is taken, in its order', async t => {
  const secrets = [`${SECRET} 1`, `${SECRET} 2`, `${SECRET} 3`]

  t.strictSame(secretsOf(secrets, 'secret', SETTING), secrets)
})

t.test('a secret that is not given comes from the setting', async t => {
  for (const value of [OF_SETTING, ` ${OF_SETTING}\r\n`, `\t${OF_SETTING}`]) {
    setEnv(t, { [SETTING]: value })
    t.strictSame(secretsOf(undefined, 'secret', SETTING), [OF_SETTING])
  }
  t.strictSame(secretsOf(SECRET, 'secret', SETTING), [SECRET], 'the option goes first')
})

t.test('a setting may have several secrets, the newest first, of which each is long enough', async t => {
  setEnv(t, { [SETTING]: `${OF_SETTING}-2 \t${OF_SETTING}-1\n` })
  t.strictSame(secretsOf(undefined, 'secret', SETTING), [`${OF_SETTING}-2`, `${OF_SETTING}-1`])

  setEnv(t, { [SETTING]: `${OF_SETTING} of words` })
  t.throws(() => secretsOf(undefined, 'secret', SETTING), { name: 'OptionsError', message: /^secret must be at least 32 characters, each of them; set / })
})

t.test('a setting with quotes around it, or with control characters in it, is refused and not printed', async t => {
  for (const value of [
    `"${OF_SETTING}"`, `'${OF_SETTING}'`, `“${OF_SETTING}”`, `"${OF_SETTING} ${OF_SETTING}"`, `${OF_SETTING}\u0007`, `\u200b${OF_SETTING}`
  ]) {
    setEnv(t, { [SETTING]: value })
    const refused = t.throws(() => secretsOf(undefined, 'secret', SETTING), {
      name: 'OptionsError', message: `${SETTING} must be the value alone: no quotes around it, no blanks and no control characters`
    }, value)
    t.notOk(String(refused).includes(OF_SETTING))
    t.strictSame(secretsOf(value, 'secret', SETTING), [value], 'the option is what the application says')
  }
})

t.test('attack 47: without option and setting the error names both', async t => {
  t.throws(() => secretsOf(undefined, 'session.secret', SETTING), {
    name: 'OptionsError',
    message: `session.secret must be at least 32 characters; set ${SETTING}, for example to the output of: openssl rand -hex 32`
  })
})

t.test('attack 47: a short or odd secret is refused and not printed', async t => {
  const short = 'only thirty-one characters long'
  t.equal(short.length, 31)

  for (const secret of [
    '', short, [], [short], [SECRET, short], [SECRET, ''], [SECRET, undefined], [[SECRET]], 1,
    12345678901234567890123456789012n, true, {}, { length: 32 }, Buffer.alloc(32), () => SECRET
  ]) {
    const refused = t.throws(() => secretsOf(secret, 'secret', SETTING), { name: 'OptionsError', message: /^secret must be at least 32 characters/ })

    t.notOk(String(refused).includes(short) || String(refused).includes(SECRET))
  }
})

t.test('attack 47: a short setting is refused and not printed, and an empty option does not fall back to it', async t => {
  setEnv(t, { [SETTING]: 'too short' })
  const refused = t.throws(() => secretsOf(undefined, 'secret', SETTING), { name: 'OptionsError' })
  t.notOk(String(refused).includes('too short'))

  setEnv(t, { [SETTING]: SECRET })
  t.throws(() => secretsOf('', 'secret', SETTING), { name: 'OptionsError' })
  t.throws(() => secretsOf([], 'secret', SETTING), { name: 'OptionsError' })
})

t.test('the error of several secrets says that each must be long enough', async t => {
  t.throws(() => secretsOf([SECRET, 'short'], 'secret', SETTING), { message: /^secret must be at least 32 characters, each of them;/ })
})

t.test('the setting of dataSecret has several secrets, separated by blanks, the newest first', async t => {
  const [newest, older] = ['a'.repeat(32), 'b'.repeat(64)]
  for (const [setting, secrets] of [
    [newest, [newest]],
    [`${newest} ${older}`, [newest, older]],
    [` ${newest}\n\t${older}  `, [newest, older]],
    ['', null],
    [' \n', null]
  ] as const) {
    setEnv(t, { SVC_AUTH_DATA_SECRET: setting })
    t.strictSame(dataSecretsOf(undefined), secrets, JSON.stringify(setting))
    t.strictSame(dataSecretsOf(SECRET), [SECRET], 'the option goes first, and its blanks are a part of it')
  }
  for (const quoted of [`"${newest}"`, `"${newest} ${older}"`, `'${newest}' '${older}'`, `${newest}\u0001`, `${newest} \u200b${older}`]) {
    setEnv(t, { SVC_AUTH_DATA_SECRET: quoted })
    t.throws(() => dataSecretsOf(undefined), { name: 'OptionsError', message: /^SVC_AUTH_DATA_SECRET must be the value alone/ }, quoted)
  }
  setEnv(t, { SVC_AUTH_DATA_SECRET: undefined })
  t.equal(dataSecretsOf(undefined), null)
  t.strictSame(dataSecretsOf([SECRET, older]), [SECRET, older])
})

t.test('attack 47: a short data secret is refused and not printed, that of the setting too', async t => {
  const message = /^dataSecret must be at least 32 characters(?:, each of them)?; set SVC_AUTH_DATA_SECRET, for example/
  for (const given of ['', 'too-short', [], ['a'.repeat(32), 'too-short'], 7, {}]) {
    const refused = t.throws(() => dataSecretsOf(given), { name: 'OptionsError', message })
    t.notOk(String(refused).includes('too-short'))
  }
  for (const setting of ['too-short', `${'a'.repeat(32)} too-short`, 'forty characters, but blanks between them']) {
    setEnv(t, { SVC_AUTH_DATA_SECRET: setting })
    const refused = t.throws(() => dataSecretsOf(undefined), { name: 'OptionsError', message }, setting)
    t.notOk(String(refused).includes('too-short'))
  }
})

t.test('what needs data secrets and has none says why, and names the option and its setting', async t => {
  t.strictSame(requiredDataSecrets([SECRET], 'with a feature, because of a reason'), [SECRET])
  t.throws(() => requiredDataSecrets(null, 'with a feature, because of a reason'), {
    name: 'OptionsError',
    message: 'dataSecret is required with a feature, because of a reason; set it, or SVC_AUTH_DATA_SECRET, for example to the output of: ' +
      'openssl rand -hex 32'
  })
})

t.test('a key is derived for each secret, use and salt', async t => {
  const key = derivedKey(SECRET, 'a use')

  t.strictSame(key, Buffer.from(hkdfSync('sha256', SECRET, '', 'a use', 32)))
  for (const other of [derivedKey(`${SECRET}.`, 'a use'), derivedKey(SECRET, 'another use'), derivedKey(SECRET, 'a use', 'salt')]) {
    t.equal(other.length, 32)
    t.notSame(other, key)
  }
})
