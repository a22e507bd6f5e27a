import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import root from 'tap'

export const PATIENCE_MS = 30_000

/** What a user does in a window, in any browser. What a page does not have is waited for: it may be that of the next page. */
export abstract class Tab {
  abstract open (url: string): Promise<unknown>
  abstract url (): Promise<string>
  /** The names of the cookies that the page is sent with. */
  abstract cookies (): Promise<string[]>
  /** The URI of an app to which the page has led; empty for none. */
  abstract appUri (): Promise<string>
  abstract close (): Promise<unknown>
  protected abstract press (xpath: string): Promise<unknown>
  protected abstract type (xpath: string, text: string): Promise<unknown>
  protected abstract read (xpath: string): Promise<string>

  /** Fills in fields by their names. */
  async fill (fields: Record<string, string>): Promise<void> {
    for (const [name, value] of Object.entries(fields)) await inTime(async () => this.type(`//input[@name="${name}"]`, value))
  }

  /** Clicks a button or a link by its words. */
  async click (words: string): Promise<void> {
    await inTime(async () => this.press(`//*[self::button or self::a][normalize-space()="${words}"]`))
  }

  async text (): Promise<string> {
    return inTime(async () => this.read('//body'))
  }

  async waitForHeading (heading: string): Promise<void> {
    await inTime(async () => expectStart(await this.read('//h1'), heading))
  }

  async waitForUrl (start: string): Promise<URL> {
    return new URL(await inTime(async () => expectStart(await this.url(), start)))
  }

  async waitForApp (start: string): Promise<URL> {
    return new URL(await inTime(async () => expectStart(await this.appUri(), start)))
  }
}

function expectStart (found: string, start: string): string {
  if (!found.startsWith(start)) throw new Error(`expected ${start}, found ${found}`)
  return found
}

export interface Program {
  /** Waits for what the program says about itself: the group of an expression. */
  says (what: RegExp): Promise<string>
}

/** Tries until it succeeds. */
export async function inTime<T> (act: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; ; await wait(50)) {
    try {
      return await act()
    } catch (error) {
      if (Date.now() > end) throw error
    }
  }
}

/** Starts a program that ends with the tests. */
export function startProgram (program: string, args: readonly string[], env: Record<string, string> = {}): Program {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit')
  root.teardown(async () => {
    child.kill()
    await ended
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => { output += text })
  return {
    async says (what) {
      return inTime(async () => {
        const [, said] = what.exec(output) ?? []
        if (said === undefined) throw new Error(`${program} has not said ${what}: ${output}`)
        return said
      })
    }
  }
}
