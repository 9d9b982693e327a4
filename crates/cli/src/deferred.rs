//! Command arguments that are built only for the given command, because building all of them takes most of the start-up time.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// The arguments of a command.
#[derive(Debug)]
pub(crate) struct Deferred<A>(Box<A>);

impl<A> Deref for Deferred<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| described(command, A::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| described(command, A::augment_args_for_update))
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> clap::error::Result<Self> {
        A::from_arg_matches(matches).map(|arguments| Self(Box::new(arguments)))
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> clap::error::Result<Self> {
        A::from_arg_matches_mut(matches).map(|arguments| Self(Box::new(arguments)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> clap::error::Result<()> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Adds the arguments to a command, but keeps its description, which the doc comment of the arguments would replace.
fn described(command: Command, augment: fn(Command) -> Command) -> Command {
    let said = [command.get_about(), command.get_long_about()];
    let [about, long_about] = said.map(|text| Resettable::from(text.cloned()));
    signed(augment(command)).about(about).long_about(long_about)
}

/// Makes options accept negative values, so that their parsers can report what is expected.
pub(crate) fn signed(command: Command) -> Command {
    let taking = |option: Arg| match option.get_value_names() {
        _ if option.is_positional() || !option.get_action().takes_values() => option,
        // With a unit, they are no numbers for clap.
        Some([name]) if ["DURATION", "PERCENT"].contains(&name.as_str()) => option.allow_hyphen_values(true),
        _ => option.allow_negative_numbers(true),
    };
    command.mut_args(taking).mut_subcommands(signed)
}
