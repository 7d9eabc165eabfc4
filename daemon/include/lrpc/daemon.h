// What lrpcd, lrpc-netd and lrpc-directory have in common: some of their options, how they start, their log. What they
// log goes to spdlog's default logger, which waits for nobody. On the main thread, before there is any other.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/command_line.h"
#include "lrpc/sandbox.h"

namespace lrpc::daemon {

struct Options {
  std::string sandbox = "best-effort";  ///< Or "off", or "required".
  std::string log_level = "info";
  int ready_fd = -1;  ///< Negative: nobody is told.
};

/// Declares --sandbox, --log-level and --ready-fd. The help says that the daemon shuts itself in `shuts_in`, and that
/// it tells when `ready`. Both texts are parts of sentences.
void declare(const command_line::Program& program, Options& options, const std::string& shuts_in,
             const std::string& ready);

/// What every daemon does first. No other process can read its memory or take its descriptors, it has none that it did
/// not ask for, a closed pipe or a limit of files' sizes is an error code and not its death, and `name` stands in each
/// line of its log. Standard streams that are closed become /dev/null. Errors: invalid_argument (--ready-fd names no
/// descriptor that is open).
Status start(const std::string& name, const Options& options);

/// Writes a line as it is, where the log goes. A line that the standard error does not take at once, since nobody reads
/// it or its disk is full, is left out, and so are the log's; the next line that it takes says how many. Any thread.
void write_line(std::string_view line) noexcept;

/// Whether SIGTERM or SIGINT has come, or comes within `longest`, which is logged. All threads block both.
[[nodiscard]] bool told_to_end(std::chrono::milliseconds longest);
/// Does `work`, which waits for another process, in a thread of its own. If told_to_end() meanwhile, ends this process
/// at once, with status 0: `work` must leave nothing outside of this process that its death does not undo.
/// Errors: those of `work`; system_error if no thread can be started.
Status do_unless_told_to_end(const std::function<Status()>& work);
/// From here on SIGTERM and SIGINT kill: what is under way may take its time, and who asks twice does not want to wait.
void let_signals_kill();

/// Shuts the process in as --sandbox says, and logs it. Errors: those of sandbox::enter().
Status shut_in(const Options& options, sandbox::Options sandbox);
/// Logs what holds; nothing: the sandbox is off.
void log_sandbox(const std::optional<sandbox::Report>& report);

/// Tells whoever waits at --ready-fd, and closes it. Errors: system_error.
Status tell_ready(const Options& options);

}  // namespace lrpc::daemon
