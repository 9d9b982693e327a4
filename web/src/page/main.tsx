// A page that holds its data.

import "../page.css";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { byId, embedded, isTyped } from "../elements";
import { Help } from "../profile/keys";
import { ThemeButton } from "../theme";
import { InputView, aboutOf, type ViewData } from "../view";

function Page({ data }: { data: ViewData }) {
  const [hasHelp, setHelp] = useState(false);
  // The view of a trace has help of its own.
  useEffect(() => {
    const listen = (event: KeyboardEvent) => event.key === "?" && !isTyped(event) && setHelp(true);
    if (data.kind !== "tokio") addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <header>
        <div><h1>{data.title}</h1><p>{aboutOf(data)}</p></div>
        {data.kind !== "tokio" && <button type="button" id="keys" aria-label="Keys" onClick={() => setHelp(true)}>?</button>}
        <ThemeButton />
      </header>
      <main><InputView data={data} /></main>
      {hasHelp && data.kind !== "tokio" && <Help data={data} onClose={() => setHelp(false)} />}
      <footer>Made by Borehole. This file contains all of its data and makes no network requests.</footer>
    </>
  );
}

const app = byId("app");
app.replaceChildren();
render(<Page data={embedded<ViewData>()} />, app);
