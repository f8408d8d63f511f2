// SPDX-License-Identifier: Apache-2.0
// The box "Is it this one?": computes the sha256 of a definition as halod does (docs/report-api.md), in this browser,
// and compares it with those that the page lists. It sends nothing: the page's policy lets it connect to nothing.
"use strict";

(() => {
  const LONGEST = 256 * 1024;
  const DEEPEST = 100;

  class Bad extends Error {}

  // UTF-8 as halod encodes it: half of a surrogate pair, which TextEncoder would replace, keeps its three bytes.
  function utf8(text) {
    const bytes = [];
    for (const character of text) {
      const code = character.codePointAt(0);
      if (code < 0x80) bytes.push(code);
      else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
      else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    }
    return new Uint8Array(bytes);
  }

  async function sha256(text) {
    const digest = await crypto.subtle.digest("SHA-256", utf8(text));
    return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  // A command and each argument, each followed by one NUL; a URL as it is written.
  const stdioText = (words) => words.map((word) => word + "\0").join("");

  // --- JSON, with comments and trailing commas; a number stays as it is spelled ------------------------------

  class Spelled {
    constructor(text) {
      this.text = text;
    }
  }

  const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
  const WORDS = { true: "true", false: "false", null: "null" };
  const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

  function parseJson(source) {
    let at = 0;

    function blank() {
      for (;;) {
        while (at < source.length && " \t\r\n\ufeff".includes(source[at])) at += 1;
        if (source.startsWith("//", at)) {
          const end = source.indexOf("\n", at);
          at = end < 0 ? source.length : end;
        } else if (source.startsWith("/*", at)) {
          const end = source.indexOf("*/", at + 2);
          if (end < 0) throw new Bad("a comment does not end");
          at = end + 2;
        } else return;
      }
    }

    function string() {
      let text = "";
      at += 1;
      for (;;) {
        const character = source[at];
        if (character === undefined || character === "\n") throw new Bad("a string does not end");
        at += 1;
        if (character === '"') return text;
        if (character !== "\\") {
          text += character;
          continue;
        }
        const escape = source[at];
        at += 1;
        if (escape === "u") {
          const digits = source.slice(at, at + 4);
          if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new Bad("a \\u escape is not four hex digits");
          text += String.fromCharCode(parseInt(digits, 16));
          at += 4;
        } else if (Object.hasOwn(ESCAPES, escape)) text += ESCAPES[escape];
        else throw new Bad("a string has an unknown escape");
      }
    }

    function items(close, depth, item) {
      at += 1;
      for (;;) {
        blank();
        if (source[at] === close) {
          at += 1;
          return;
        }
        item(depth + 1);
        blank();
        if (source[at] === ",") at += 1;
        else if (source[at] !== close) throw new Bad(`expected a comma or ${close} at character ${at + 1}`);
      }
    }

    function value(depth) {
      if (depth > DEEPEST) throw new Bad("it is nested too deeply");
      blank();
      const first = source[at];
      if (first === '"') return string();
      if (first === "[") {
        const list = [];
        items("]", depth, (below) => list.push(value(below)));
        return list;
      }
      if (first === "{") {
        const found = new Map(); // of two equal keys the last counts, as in the tools
        items("}", depth, (below) => {
          if (source[at] !== '"') throw new Bad(`expected a key at character ${at + 1}`);
          const key = string();
          blank();
          if (source[at] !== ":") throw new Bad(`expected a colon at character ${at + 1}`);
          at += 1;
          found.set(key, value(below));
        });
        return found;
      }
      NUMBER.lastIndex = at;
      const number = NUMBER.exec(source);
      if (number !== null) {
        at += number[0].length;
        return new Spelled(number[0]);
      }
      for (const [word, spelled] of Object.entries(WORDS)) {
        if (source.startsWith(word, at)) {
          at += word.length;
          return new Spelled(spelled);
        }
      }
      throw new Bad(`expected a value at character ${at + 1}`);
    }

    const whole = value(0);
    blank();
    if (at < source.length) throw new Bad(`something follows at character ${at + 1}`);
    return whole;
  }

  // --- what was pasted, in every way that it may be meant -----------------------------------------------------

  const URL_KEYS = ["url", "serverUrl", "httpUrl", "uri"];
  const COMMAND_KEYS = ["command", "cmd"];

  function word(value) {
    if (typeof value === "string") return value;
    if (value instanceof Spelled) return value.text;
    throw new Bad("an argument is neither text nor a number");
  }

  function fromEntry(entry) {
    const readings = [];
    for (const key of COMMAND_KEYS) {
      const command = entry.get(key);
      if (command === undefined || command === "") continue;
      const first = Array.isArray(command) ? command.map(word) : [word(command)];
      const given = entry.get("args");
      const none = given === undefined || (given instanceof Spelled && given.text === "null");
      if (!none && !Array.isArray(given)) throw new Bad("args is not a list");
      const rest = none ? [] : given.map(word);
      if (first.length) readings.push({ how: "command and arguments of the entry", words: first.concat(rest) });
      if (Array.isArray(command) && rest.length) readings.push({ how: "command of the entry", words: first });
    }
    for (const key of URL_KEYS) {
      const url = entry.get(key);
      if (typeof url === "string" && url) readings.push({ how: "address of the entry", url });
    }
    return readings;
  }

  function fromJson(value, depth = 0) {
    if (typeof value === "string") return fromText(value);
    if (Array.isArray(value)) {
      if (value.length && value.every((item) => typeof item === "string" || item instanceof Spelled))
        return [{ how: "list of words", words: value.map(word) }];
      return value.flatMap((item) => (item instanceof Map || Array.isArray(item) ? fromJson(item, depth + 1) : []));
    }
    if (!(value instanceof Map)) return [];
    const own = fromEntry(value);
    if (own.length) return own;
    return [...value.values()].flatMap((item) => (item instanceof Map ? fromJson(item, depth + 1) : []));
  }

  // A command line as a POSIX shell splits it; nothing is expanded.
  function split(line) {
    const words = [];
    let current = null;
    for (let at = 0; at < line.length; at += 1) {
      const character = line[at];
      if (/\s/.test(character)) {
        if (current !== null) words.push(current);
        current = null;
      } else if (character === "'") {
        const end = line.indexOf("'", at + 1);
        if (end < 0) throw new Bad("a quote does not end");
        current = (current ?? "") + line.slice(at + 1, end);
        at = end;
      } else if (character === '"') {
        current ??= "";
        for (at += 1; line[at] !== '"'; at += 1) {
          if (at >= line.length) throw new Bad("a quote does not end");
          if (line[at] === "\\" && '"\\$`\n'.includes(line[at + 1] ?? " ")) {
            at += 1;
            if (line[at] !== "\n") current += line[at];
          } else current += line[at];
        }
      } else if (character === "\\") {
        at += 1;
        if (at >= line.length) throw new Bad("it ends with a backslash");
        if (line[at] !== "\n") current = (current ?? "") + line[at];
      } else current = (current ?? "") + character;
    }
    if (current !== null) words.push(current);
    return words;
  }

  function fromText(pasted) {
    const trimmed = pasted.trim();
    if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(trimmed) && !/\s/.test(trimmed))
      return [{ how: "address", url: trimmed }];
    const readings = [{ how: "command line", words: split(trimmed) }];
    if (/\s/.test(trimmed)) readings.push({ how: "one command without arguments", words: [trimmed] });
    if (/^\S*\$|^\S+$/.test(trimmed)) readings.push({ how: "address", url: trimmed });
    return readings;
  }

  function read(pasted) {
    if (!pasted.trim()) throw new Bad("Paste something first.");
    if (pasted.length > LONGEST) throw new Bad("That is too long for one definition.");
    const start = pasted.trimStart()[0];
    let readings;
    if (start === "{" || start === "[") readings = fromJson(parseJson(pasted));
    else if (/^\s*"(?:[^"\\]|\\.)*"\s*:\s*[{["]/.test(pasted)) readings = fromJson(parseJson(`{${pasted}}`));
    else readings = fromText(pasted);
    if (!readings.length) throw new Bad("There is no command and no address in it.");
    return readings;
  }

  async function hashed(pasted) {
    const answers = [];
    for (const reading of read(pasted)) {
      const text = reading.url === undefined ? stdioText(reading.words) : reading.url;
      if ((reading.words ?? [reading.url]).some((one) => one.includes("\0"))) throw new Bad("A NUL stands in it.");
      const hash = await sha256(text);
      if (!answers.some((one) => one.hash === hash)) answers.push({ ...reading, hash });
    }
    return answers;
  }

  // --- the page ---------------------------------------------------------------------------------------------

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function show(outcome, answers, known) {
    const same = answers.filter((one) => known.has(one.hash));
    const box = element("div", "", same.length ? "notice good" : "notice");
    box.append(element("p", same.length ? "Yes: it is this one." : "No: it is another definition.", "verdict"));
    const list = element("dl", "", "readings");
    for (const one of answers) {
      list.append(element("dt", `Read as ${one.how}${known.has(one.hash) ? ", the same" : ""}`));
      const value = element("dd");
      value.append(element("code", one.hash, "hash whole"));
      list.append(value);
    }
    box.append(list);
    if (!same.length)
      box.append(element("p", "Every character counts, the version and the order of arguments as well.", "hint"));
    outcome.replaceChildren(box);
  }

  function fail(outcome, message) {
    const box = element("div", "", "notice warn");
    box.append(element("p", message));
    outcome.replaceChildren(box);
  }

  function start() {
    const box = document.getElementById("hashbox");
    const candidate = document.getElementById("candidate");
    const outcome = document.getElementById("outcome");
    const known = new Set((box.dataset.hashes || "").split(" ").filter(Boolean));
    let asked = 0;

    async function compare() {
      const turn = (asked += 1);
      try {
        const answers = await hashed(candidate.value);
        if (turn === asked) show(outcome, answers, known);
      } catch (error) {
        if (turn === asked) fail(outcome, error instanceof Bad ? sentence(error.message) : "It cannot be read.");
      }
    }

    const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

    document.getElementById("compare").addEventListener("click", compare);
    candidate.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) compare();
    });
    document.getElementById("forget").addEventListener("click", () => {
      asked += 1;
      candidate.value = "";
      outcome.replaceChildren();
      candidate.focus();
    });
    window.addEventListener("pagehide", () => {
      candidate.value = ""; // nothing for the page cache or a restored session
    });
    if (globalThis.crypto?.subtle === undefined) {
      fail(outcome, "This browser computes hashes only over https or on the same machine.");
      document.getElementById("compare").disabled = true;
    }
    document.getElementById("without-script").hidden = true;
    for (const part of box.querySelectorAll(".when-script")) part.hidden = false;
  }

  start();
})();
