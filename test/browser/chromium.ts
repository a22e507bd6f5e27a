import { type Browser, chromium } from 'playwright-core'
import root from 'tap'

/**
 * What Chromium does without: first what Playwright turns off, whose list this one replaces, then the pages in which each window lists
 * suggestions for addresses.
 */
const DISABLED_FEATURES = [
  'AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'HttpsFirstBalancedModeAutoEnable', 'LensOverlay',
  'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning', 'AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints',
  'NetworkTimeServiceQuerying', 'AimEnabled', 'PreconnectToSearch',
  'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup'
]

// The files that share a process take a minute or two together, and much longer beside other work.
root.setTimeout(30 * 60_000)

const started = new Map<string, Promise<Browser>>()

/**
 * Starts Debian's Chromium, for which there are no other machines than this one. The tests of a process share it, and each visitor has a
 * profile of their own there; closed at the end of the process.
 */
export async function startChromium (...args: readonly string[]): Promise<Browser> {
  const key = args.join(' ')
  const browser = started.get(key) ?? start(args)
  started.set(key, browser)
  return browser
}

async function start (args: readonly string[]): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
      `--disable-features=${DISABLED_FEATURES.join()}`,
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
      ...args
    ]
  })
  root.teardown(() => browser.close())
  return browser
}
