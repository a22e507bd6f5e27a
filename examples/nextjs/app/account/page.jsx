import { redirect } from 'next/navigation'
import { ask, readSession } from '../fastify.js'

export default async function Account () {
  const { principal } = await readSession()
  if (principal === null) redirect('/auth/pages/sign-in?next=/account')

  const orders = await ask('/api/orders')
  return (
    <>
      <h1>Your orders</h1>
      <ul>{orders.map(order => <li key={order}>{order}</li>)}</ul>
    </>
  )
}
