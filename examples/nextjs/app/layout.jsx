import Link from 'next/link'
import { readSession } from './fastify.js'

export const metadata = { title: 'Shop' }

export default async function Layout ({ children }) {
  const { principal } = await readSession()
  return (
    <html lang='en'>
      <body>
        <nav>
          <Link href='/'>Shop</Link> <Link href='/account'>Your orders</Link>
          {principal === null ? <Visitor /> : <User claims={principal.claims} />}
        </nav>
        <main>{children}</main>
      </body>
    </html>
  )
}

const Visitor = () => <p>You are not signed in. <a href='/auth/pages/sign-in'>Sign in</a></p>

const User = ({ claims: { name, email } }) => (
  <form method='post' action='/auth/logout'>
    You are {name ?? email}. <input type='hidden' name='next' value='/' />
    <button>Sign out</button>
  </form>
)
