// An input as a view of its kind.

import type { AskChart } from "./chart/data";
import type { PageData } from "./profile/data";
import { ProfilePage, type Deepen } from "./profile/page";
import type { TokioData } from "./tokio/data";
import { TokioPage } from "./tokio/page";

export type ViewData = PageData | TokioData;

const ABOUT_TOKIO = "What a Tokio program did";

export const aboutOf = (data: ViewData): string => (data.kind === "tokio" ? ABOUT_TOKIO : data.about);

// `ask` gets flame charts, and `deepen` smaller calls, where there is somebody to ask.
export const InputView = ({ data, ask, deepen }: { data: ViewData; ask?: AskChart; deepen?: Deepen }) => (data.kind === "tokio" ? <TokioPage data={data} /> : <ProfilePage data={data} ask={ask} deepen={deepen} />);
