import { cache } from 'react'
import { headers } from 'next/headers'

/** Asks Fastify as the user of this request, once for each path. */
export const ask = cache(async path => {
  const request = await headers()
  const [cookie, protocol] = ['cookie', 'x-forwarded-proto'].map(name => request.get(name) ?? '')
  const answer = await fetch(new URL(path, process.env.FASTIFY_URL ?? 'http://localhost:3000'), {
    headers: { cookie, 'x-forwarded-proto': protocol }, cache: 'no-store'
  })
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
  return answer.json()
})

export const readSession = () => ask('/auth/session')
