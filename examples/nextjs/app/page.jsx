import Link from 'next/link'

export default function Home () {
  return <h1>Welcome. See <Link href='/account'>your orders</Link>.</h1>
}
