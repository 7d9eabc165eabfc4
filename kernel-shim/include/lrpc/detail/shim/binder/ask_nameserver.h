// Asking the nameserver, which may hang up before it has read the request.
#pragma once

#include <chrono>
#include <utility>
#include <variant>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::shim {

/// Why the nameserver has hung up, after a send that failed with `sent`. A nameserver that turns a client away sends
/// the reason first: a Failed, which lies unread in the socket. If there is none, the result is `sent`. Never blocks.
[[nodiscard]] inline Error last_words(int socket, Error sent) {
  auto said = receive_message(socket, kDoNotWait);
  auto* const failed = said && *said ? std::get_if<Failed>(&(*said)->body) : nullptr;
  return failed != nullptr ? Error{failed->code, std::move(failed->text)} : std::move(sent);
}

/// Sends a request to the nameserver and receives its answer, which must be an Answer. Blocks at most `patience`.
/// Errors: what the nameserver says; those of send_message() and receive_message(); timed_out; bad_message.
template <class Answer>
Result<Answer> ask_nameserver(int socket, BinderBody request, std::chrono::milliseconds patience) {
  const Wait wait(patience);
  const Status sent = send_message(socket, {1, std::move(request), {}, {}}, patience);
  if (sent.code() == Errc::peer_gone) return last_words(socket, sent.error());
  if (!sent) return sent.error();
  auto answer = receive_message(socket, wait.left());
  if (!answer) return answer.error();
  if (!answer->has_value()) return Error{Errc::timed_out, "the nameserver did not answer in time"};
  if (auto* wanted = std::get_if<Answer>(&(*answer)->body)) return std::move(*wanted);
  if (auto* failed = std::get_if<Failed>(&(*answer)->body)) return Error{failed->code, std::move(failed->text)};
  return Error{Errc::bad_message, "the nameserver's answer makes no sense"};
}

}  // namespace lrpc::shim
