// Recordings: started and stopped here, where the server allows it.

import { useEffect, useState } from "preact/hooks";
import { grouped } from "../numbers";
import { record, recordings, stop, type InputEntry, type Recording } from "./server";

// How often the list is asked for: recordings end by themselves.
const ASKED_MS = 1000;

interface RecordingsProps {
  inputs: InputEntry[];
  // Opens the live table of an input.
  open: (input: InputEntry) => void;
}

export function Recordings({ inputs, open }: RecordingsProps) {
  const [all, setAll] = useState<Recording[] | null>(null), [fault, setFault] = useState<string | null>(null);
  // The recording that was started here: its input is opened when it is there.
  const [begun, setBegun] = useState<string | null>(null);
  const read = (signal?: AbortSignal) => recordings(signal).then(setAll, (error: Error) => signal?.aborted || setFault(error.message));
  useEffect(() => {
    const ended = new AbortController();
    void read(ended.signal);
    const timer = setInterval(() => void read(ended.signal), ASKED_MS);
    return () => (clearInterval(timer), ended.abort());
  }, []);
  const inputOf = ({ input }: { input: string }) => inputs.find(({ name, kind }) => name === input && kind !== "unreadable");
  const ready = begun === null ? undefined : inputOf({ input: begun });
  useEffect(() => {
    if (ready) setBegun(null), open(ready);
  }, [ready]);
  const start = (seconds: number, rate: number) => {
    setFault(null);
    record(seconds, rate).then(({ input }) => (setBegun(input), read()), (error: Error) => setFault(error.message));
  };
  return (
    <section id="recordings" aria-labelledby="recordings-title">
      <div class="bar"><h2 id="recordings-title">Record</h2><span class="hint">the processes that were named at the start of the server</span></div>
      <Order start={start} />
      {begun !== null && <p class="hint" role="status">Recording. The first samples open {begun}.</p>}
      {fault && <p class="error" role="alert">{fault}</p>}
      {all && all.length > 0 && (
        <div class="rows">
          <table>
            <thead><tr>{["Rate", "Length", "State", "", "Recording"].map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
            <tbody>{all.map((recording) => <Row key={recording.id} {...{ recording, input: inputOf(recording), open }} stop={() => void stop(recording.id).then(() => read(), (error: Error) => setFault(error.message))} />)}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ recording: { input: name, rate, seconds, running, message }, input, open, stop }: { recording: Recording; input: InputEntry | undefined; open: (input: InputEntry) => void; stop: () => void }) {
  return (
    <tr>
      <td>{grouped(rate)} Hz</td>
      <td>{grouped(seconds)} s</td>
      <td>{running ? "running" : "ended"}</td>
      <td>{running && <button type="button" class="stop" aria-label={`Stop ${name}`} onClick={stop}>Stop</button>}</td>
      <td>{input ? <button type="button" class="handle" onClick={() => open(input)}>{name}</button> : name}{message && <small>{message}</small>}</td>
    </tr>
  );
}

function Order({ start }: { start: (seconds: number, rate: number) => void }) {
  const [seconds, setSeconds] = useState(30), [rate, setRate] = useState(100);
  return (
    <form class="bar" onSubmit={(event) => (event.preventDefault(), start(seconds, rate))}>
      <label>Seconds <input id="seconds" type="number" min={1} max={3600} value={seconds} required onInput={(event) => setSeconds(event.currentTarget.valueAsNumber)} /></label>
      <label>Samples per second <input id="rate" type="number" min={1} max={10_000} value={rate} required onInput={(event) => setRate(event.currentTarget.valueAsNumber)} /></label>
      <button type="submit" id="start">Start</button>
    </form>
  );
}
