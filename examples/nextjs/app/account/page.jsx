import { redirect } from 'next/navigation'
import { ask, readSession } from '../fastify.js'

export default async function Account () {
  const { principal } = await readSession()
  if (principal === null) redirect('/auth/pages/sign-in?next=/account')

  const { order } = await ask('/api/order')
  return <h1>{order}</h1>
}
