import { readSession } from './fastify.js'

export const metadata = { title: 'Shop' }

export default async function Layout ({ children }) {
  const { principal } = await readSession()
  return (
    <html lang='en'>
      <body>
        <header>
          {principal === null ? <a href='/auth/pages/sign-in'>Sign in</a> : <SignOut {...principal.claims} />}
        </header>
        <main>{children}</main>
      </body>
    </html>
  )
}

const SignOut = ({ email }) => (
  <form method='post' action='/auth/logout'>You are {email}. <button>Sign out</button></form>
)
