/**
 * What attackers write where an application takes the address to go to next: what is known to fool checks, and what looks like it and is
 * harmless. That nobody follows the first is half of the promise; that the second is followed is the other half.
 */

/** Targets that leave `origin`, or that some browser, proxy or parser reads as leaving it. None is followed. */
export function foreignTargets (origin: string): string[] {
  const { protocol, host, hostname } = new URL(origin)
  const otherScheme = protocol === 'https:' ? 'http:' : 'https:'
  return [
    // Without a scheme.
    '//evil.test', '///evil.test', '////evil.test', '/////evil.test/', '//evil.test/%2f..', '//evil.test/..;/..', '//',
    '///', '//?', '//#', '//:80', '//evil.test:80',
    '//evil.test#', '//evil.test?', `//evil.test@${host}/`, `//${host}@evil.test/`, `//${host}.evil.test/`,

    // Dot segments that leave an empty one in front.
    '/.//', '/..//', '/%2e//', '/%2e%2e//', '/.//evil.test', '/..//evil.test', './/evil.test', '..//evil.test', '/a/..//evil.test', '/%2e//evil.test',
    '/%2E%2e//evil.test', '/.%2e//evil.test', '/a/b/../..//evil.test', '/.///evil.test', '/;/..//evil.test', '/../..//evil.test', `${origin}//evil.test`,
    `${origin}/.//evil.test`, `${origin}/a/..//evil.test`,

    // Backslashes, which browsers take for slashes.
    '\\', '\\\\', '\\evil.test', '/\\evil.test', '\\\\evil.test', '\\/evil.test', '/\\/evil.test', '//\\evil.test', '/\\\\evil.test', '\\\\\\evil.test',
    '/..\\/evil.test', '/.\\evil.test', '/a/..\\\\evil.test', '/a\\b', '/path?a=\\evil.test', '/path#\\evil.test',
    `${origin}\\@evil.test/`, `${origin}\\.evil.test`,
    `${origin}\\`, 'https:\\\\evil.test', 'http:/\\evil.test', 'http:\\/evil.test',

    // Control characters, which browsers leave out, and which end a line or a string elsewhere.
    '/\t/evil.test', '/\n/evil.test', '/\r/evil.test', '/\r\n/evil.test', '\t//evil.test', '\n//evil.test', '//\tevil.test', '//evil\t.test', '/\t\\evil.test',
    '/\u0000/evil.test', '\u0000', '\u0000//evil.test', '\u0000/here', '\u001f//evil.test', '/here\u0000', '/here\t', '\r\n/here', '/a\u001fb', '/a\u007fb',
    '/a\u000b/evil.test', '/a\u000c/evil.test', '/a\u001b[2J', '/a\r\nSet-Cookie: a=b', '/a\nLocation: //evil.test',
    'ht\ntps://evil.test', 'java\nscript:alert(1)',
    'java\tscript:alert(1)', '\u0001javascript:alert(1)', `${origin}\t.evil.test`, `${origin}\n@evil.test`, `${origin}\u0000.evil.test`,

    // Spaces around, which are cut off.
    ' //evil.test', '  //evil.test', '//evil.test ', '   https://evil.test   ', ' javascript:alert(1)', '// evil.test',
    'https:// evil.test', `${origin} .evil.test`,
    `${origin} @evil.test`,

    // Whole addresses, and hosts that begin or end like the right one.
    'https://evil.test', 'http://evil.test', 'HTTPS://EVIL.TEST', 'https:///evil.test', 'http:////evil.test',
    `${otherScheme}evil.test`, `${otherScheme}/evil.test`,
    `${otherScheme}//${host}/`, `https://${hostname}.evil.test/`, `http://${hostname}.evil.test/`, `${origin}.evil.test`, `${origin}evil.test`,
    `https://evil${hostname}/`, `https://evil.test/${host}`, `https://evil.test/?${origin}`, `https://evil.test?${origin}`, `https://evil.test#${origin}`,
    `https://evil.test;${host}/`, `${protocol}//${hostname}./`, `${protocol}//www.${hostname}/`,

    // User info, of whichever host.
    `${origin}@evil.test`, `${origin}:@evil.test`, `${origin}:80@evil.test/`, `${origin}%40evil.test`, `${origin}%00@evil.test`, `https://evil.test#@${host}/`,
    `https://evil.test?@${host}/`, `https://evil.test/@${host}/`, `${protocol}//user@${host}/`,
    `${protocol}//user:password@${host}/`, `${protocol}//:password@${host}/`,
    `${protocol}//a@b@${host}/`, `${protocol}//evil.test%2f@${host}/`, `${protocol}//evil.test%23@${host}/`, `//user@${host}/`,

    // Ports.
    `${protocol}//${hostname}:444/`, `${protocol}//${hostname}:1/`, `//${hostname}:444/`, `${protocol}//${hostname}:0/`, `${protocol}//${hostname}:65536/`,
    `${protocol}//${hostname}:-1/`, `${protocol}//${hostname}:a/`,

    // Hosts that are spelled otherwise, addresses, and no hosts at all.
    '//evil\u3002test', '//evil\uff0etest', '//evil\uff61test', 'https://evil\u3002test/', `${origin}\u3002evil.test`, `//evil.test\uff0f@${host}/`,
    `https://evil.test\uff0f.${host}/`, `${origin}\uff0f.evil.test`, `${origin}\uff03.evil.test`, `${origin}\uff20evil.test`, '//\uff45\uff56\uff49\uff4c.test',
    '//\u24d4\u24e5\u24d8\u24db.test', '//\u0435vil.test', 'https://xn--vil-zlc.test/', 'https://xn--a/',
    '//\u00df.test', '//evil\u00ad.test', '//\u200bevil.test',
    '//\u202eevil.test', '//\u3000', '//%65vil.test', '//evil%2etest', '//evil%E3%80%82test', '//evil.test.', `${origin}%2eevil.test`, `${origin}%2f.evil.test`,
    `${origin}%0d%0a.evil.test`, `${origin}%20.evil.test`, 'http://[::1]/', '//[::1]/', '//[::ffff:10.0.0.1]/',
    'http://[fe80::1%25lo]/', 'http://[', 'https://[::1',
    'http://]', '//2130706434/', '//0x7f000002/', '//017700000002/', '//127.2/', 'http://256.1.1.1/', 'http://',
    'https://', 'https://%', 'https://a b/', 'https://a<b/',
    'https://*/', 'https://^/',

    // Other schemes.
    'javascript:1', 'JavaScript:alert(1)', `javascript://${host}/%0aalert(1)`, 'javascript:/here', 'data:,',
    'data:text/html,<script>alert(1)</script>', 'vbscript:1',
    'about:blank', 'mailto:a@b.test', 'tel:1', 'file:///etc/hosts', 'file:/here', 'view-source:/', `view-source:${origin}/`, `blob:${origin}/8d3f`,
    `filesystem:${origin}/temporary/x`, `ftp://${host}/`, `ws://${host}/`, `wss://${host}/`, `httpx://${host}/`, `a:${origin}/`, 'x://evil.test', 'x:',
    'intent://evil.test#Intent;end',

    // None at all, and ones that are too long, if only once they are escaped.
    '', `/${'a'.repeat(2048)}`, `/${'a'.repeat(8191)}`, `/${'\u6f22'.repeat(2047)}`, `${origin}/${'../'.repeat(2700)}`, `//${'a.'.repeat(1000)}evil.test`
  ]
}

/** Targets at `origin`, with the paths to which they lead: however odd they look, nobody reads a host in them. */
export function ownTargets (origin: string): ReadonlyArray<readonly [target: string, path: string]> {
  const { protocol, host, hostname, port } = new URL(origin)
  const explicitPort = port === '' ? { 'http:': 80, 'https:': 443 }[protocol] : port
  return [
    ['/', '/'],
    ['/here', '/here'],
    ['/here?a=b#c', '/here?a=b#c'],
    ['here', '/here'],
    ['?a=b', '/?a=b'],
    ['#top', '/#top'],
    ['.', '/'],
    ['..', '/'],
    ['/a/../b', '/b'],
    ['/../../here', '/here'],
    ['/%2e%2e/here', '/here'],
    [' /here ', '/here'],
    [' ', '/'],

    // An address in a place where it is none.
    ['/a?x=//evil.test', '/a?x=//evil.test'],
    ['/a?next=https://evil.test/', '/a?next=https://evil.test/'],
    ['?//evil.test', '/?//evil.test'],
    ['#//evil.test', '/#//evil.test'],
    ['/#@evil.test', '/#@evil.test'],
    ['/a//evil.test', '/a//evil.test'],
    ['/a/https://evil.test', '/a/https://evil.test'],
    ['/https://evil.test', '/https://evil.test'],
    ['/javascript:alert(1)', '/javascript:alert(1)'],
    ['/@evil.test', '/@evil.test'],
    ['@evil.test', '/@evil.test'],
    ['/:80', '/:80'],
    [':80', '/:80'],
    ['.evil.test', '/.evil.test'],
    ['evil.test', '/evil.test'],
    ['1http://evil.test', '/1http://evil.test'],
    ['://evil.test', '/://evil.test'],
    ['/;//evil.test', '/;//evil.test'],
    ['/;@evil.test', '/;@evil.test'],

    // Escapes, once and twice: they are no slashes, dots, schemes or line ends.
    ['%2F%2Fevil.test', '/%2F%2Fevil.test'],
    ['/%2F/evil.test', '/%2F/evil.test'],
    ['/%2fevil.test', '/%2fevil.test'],
    ['/%5cevil.test', '/%5cevil.test'],
    ['%5c%5cevil.test', '/%5c%5cevil.test'],
    ['/%09/evil.test', '/%09/evil.test'],
    ['%09//evil.test', '/%09//evil.test'],
    ['/%0d%0aLocation:%20//evil.test', '/%0d%0aLocation:%20//evil.test'],
    ['/%00/evil.test', '/%00/evil.test'],
    ['/%252f%252fevil.test', '/%252f%252fevil.test'],
    ['%252F%252Fevil.test', '/%252F%252Fevil.test'],
    ['/%255cevil.test', '/%255cevil.test'],
    ['/%252e%252e//evil.test', '/%252e%252e//evil.test'],
    ['/%2e%2e/%2fevil.test', '/%2fevil.test'],
    ['/%c0%af/evil.test', '/%c0%af/evil.test'],
    ['/%ff%', '/%ff%'],
    ['https%3a//evil.test', '/https%3a//evil.test'],
    ['%68ttps://evil.test', '/%68ttps://evil.test'],
    ['java%73cript:alert(1)', '/java%73cript:alert(1)'],
    ['/%E3%80%82evil.test', '/%E3%80%82evil.test'],

    // Characters that look like slashes, dots and spaces.
    ['/\uff0fevil.test', '/%EF%BC%8Fevil.test'],
    ['\uff0f\uff0fevil.test', '/%EF%BC%8F%EF%BC%8Fevil.test'],
    ['/\u2044evil.test', '/%E2%81%84evil.test'],
    ['\u2044\u2044evil.test', '/%E2%81%84%E2%81%84evil.test'],
    ['/\u2215evil.test', '/%E2%88%95evil.test'],
    ['/\uff3cevil.test', '/%EF%BC%BCevil.test'],
    ['/\u3002\u3002/evil.test', '/%E3%80%82%E3%80%82/evil.test'],
    ['/\u2025/evil.test', '/%E2%80%A5/evil.test'],
    ['/\u200b/evil.test', '/%E2%80%8B/evil.test'],
    ['/\u202e/tset.live', '/%E2%80%AE/tset.live'],
    ['/\u00a0/evil.test', '/%C2%A0/evil.test'],
    ['\u00a0//evil.test', '/%C2%A0//evil.test'],
    ['\ufeff//evil.test', '/%EF%BB%BF//evil.test'],
    ['\u3000//evil.test', '/%E3%80%80//evil.test'],
    ['/\u2028\u0085', '/%E2%80%A8%C2%85'],
    ['/\u010d\u010a', '/%C4%8D%C4%8A'],
    ['/\u560d\u560a', '/%E5%98%8D%E5%98%8A'],
    ['/\ud800', '/%EF%BF%BD'],

    // What is written out in the answer.
    ['/na\u00efve?\u00fc=\u00df#\u00e9', '/na%C3%AFve?%C3%BC=%C3%9F#%C3%A9'],
    ['/<script>"\'', '/%3Cscript%3E%22\''],
    ['/a b?c d#e f', '/a%20b?c%20d#e%20f'],

    // The origin itself, however it is written.
    [origin, '/'],
    [`${origin}/here?a#b`, '/here?a#b'],
    [`${origin}?a`, '/?a'],
    [`${origin}#@evil.test`, '/#@evil.test'],
    [`${origin}/@evil.test`, '/@evil.test'],
    [origin.toUpperCase(), '/'],
    [`${protocol}here`, '/here'],
    [`${protocol}/here`, '/here'],
    [`${protocol}evil.test`, '/evil.test'],
    [`${protocol}/evil.test`, '/evil.test'],
    [`${protocol}///${host}/here`, '/here'],
    [`//${host}/here`, '/here'],
    [`///${host}/here`, '/here'],
    [`//@${host}/here`, '/here'],
    [`${protocol}//${hostname}:${explicitPort}/here`, '/here'],
    [`${protocol}//${hostname}:0${explicitPort}/here`, '/here'],
    [`${protocol}//${host.replaceAll('.', '\u3002')}/here`, '/here'],
    [`${protocol}//%${host.charCodeAt(0).toString(16)}${host.slice(1)}/here`, '/here'],

    [`/${'a'.repeat(2047)}`, `/${'a'.repeat(2047)}`],
    [`/${'../'.repeat(600)}here`, '/here']
  ]
}
