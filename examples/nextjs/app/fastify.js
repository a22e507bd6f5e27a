import { cache } from 'react'
import { headers } from 'next/headers'

const FASTIFY_URL = process.env.FASTIFY_URL ?? 'http://localhost:3000'

/** Asks Fastify as the user of the present request, once for each path. */
export const ask = cache(async path => {
  const request = await headers()
  const answer = await fetch(new URL(path, FASTIFY_URL), {
    headers: {
      cookie: request.get('cookie') ?? '',
      'x-forwarded-proto': request.get('x-forwarded-proto') ?? 'http'
    },
    cache: 'no-store',
    redirect: 'error'
  })
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
  return answer.json()
})

export const readSession = () => ask('/auth/session')
