import type { AuthPluginOptions, Mail } from 'fastify-svc-auth'
import { type MailLanguage, type MailText, type MailWords, de, en, mailTexts } from 'fastify-svc-auth/mails'
import { describe, expect, test } from 'tstyche'

describe('mails', () => {
  test('a name is enough, and a mail becomes texts', () => {
    expect(mailTexts).type.toBeCallableWith({ name: 'Shop' })
    expect(mailTexts).type.toBeCallableWith({ name: 'Shop', languages: [en, de] })
    expect(mailTexts).type.toBeCallableWith({
      name: 'Shop',
      brand: '#0f766e',
      address: 'Shop, Berlin',
      support: 'help@shop.example',
      place: () => null,
      logo: { url: 'https://shop.example/logo.png', width: 120, height: 40 }
    })
    expect(mailTexts).type.not.toBeCallableWith({ name: 'Shop', logo: 'https://shop.example/logo.png' })
    expect(mailTexts).type.not.toBeCallableWith({ name: 'Shop', place: async () => null })
    expect(mailTexts).type.not.toBeCallableWith({})
    expect(mailTexts).type.not.toBeCallableWith({ name: 'Shop', look: 'nice' })
    expect(mailTexts({ name: 'Shop' })).type.toBe<(mail: Mail) => MailText>()
  })

  test('a language without a text or without a kind does not compile', () => {
    expect<MailLanguage>().type.toBeAssignableFrom<typeof en>()
    expect<MailLanguage>().type.not.toBeAssignableFrom<Omit<typeof en, 'hello'>>()
    type Kinds = typeof en.kinds
    expect<MailLanguage>().type.not.toBeAssignableFrom<Omit<typeof en, 'kinds'> & { kinds: Omit<Kinds, 'new-browser'> }>()
    expect<MailLanguage>().type.not.toBeAssignableFrom<Omit<typeof en, 'kinds'> & { kinds: Omit<Kinds, 'register'> & { register: MailWords } }>()
    expect<keyof MailLanguage['kinds']>().type.toBe<Mail['kind']>()
  })

  test('the option notices takes what it knows', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ notices: { newBrowser: true } }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ notices: undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ notices: true }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ notices: { newBrowser: 'on' } }>()
  })
})
