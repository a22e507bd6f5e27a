import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'

/** Starts Debian's Chromium, for which there are no other machines than this one; closed at the end of the test. */
export async function startChromium (t: Test, args: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
      ...args
    ]
  })
  t.teardown(() => browser.close())
  return browser
}
