import type { AuthPluginOptions } from 'fastify-svc-auth'
import { Pages, type PagesOptions, type Texts, en } from 'fastify-svc-auth/pages'
import { describe, expect, test } from 'tstyche'

describe('pages', () => {
  test('a name is enough', () => {
    expect(Pages).type.toBeConstructableWith({ name: 'Shop' })
    expect(Pages).type.toBeConstructableWith({ name: 'Shop', logo: undefined, languages: [en], links: [{ label: 'Privacy', href: '/privacy' }] })
    const links = [{ label: { en: 'Help' }, href: '/help' }]
    expect(Pages).type.toBeConstructableWith({ name: 'Shop', logoDark: '/dark.svg', logoHasName: true, layout: 'plain', links })
    expect(Pages).type.toBeConstructableWith({ name: 'Shop', support: 'help@shop.example' })
    expect(Pages).type.not.toBeConstructableWith({ name: 'Shop', support: { email: 'help@shop.example' } })
    expect<PagesOptions>().type.not.toBeAssignableFrom<{ name: string, layout: 'split' }>()
    expect(Pages).type.toBeConstructableWith({ name: 'Shop', support: 'help@shop.example' })
    expect(Pages).type.not.toBeConstructableWith({ name: 'Shop', support: { email: 'help@shop.example' } })
    expect(Pages).type.not.toBeConstructableWith({})
    expect(Pages).type.not.toBeConstructableWith({ name: 'Shop', colour: 'red' })
    expect<PagesOptions>().type.not.toBeAssignableFrom<{ name: string, links: string[] }>()
  })

  test('the plugin takes them and no other object', () => {
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ pages: Pages }>()
    expect<AuthPluginOptions>().type.toBeAssignableFrom<{ pages: undefined }>()
    expect<AuthPluginOptions>().type.not.toBeAssignableFrom<{ pages: { name: string } }>()
  })

  test('a language without a text does not compile', () => {
    expect<Texts>().type.toBeAssignableFrom<typeof en>()
    type Others = Omit<typeof en, 'signIn'>
    expect<Texts>().type.not.toBeAssignableFrom<Others>()
    expect<Texts>().type.not.toBeAssignableFrom<Others & { signIn: Omit<typeof en.signIn, 'title'> }>()
  })
})
