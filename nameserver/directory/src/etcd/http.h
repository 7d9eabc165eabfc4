// POST over HTTP/1.1, with libcurl. The only file pair that knows libcurl. The other side is not trusted: every answer
// has a bound on its size and on its time; redirections, proxies of the environment and other protocols are not taken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/result.h"

namespace lrpc::directory {

struct TlsOptions {
  std::string ca;           ///< File of the authorities that may have signed the server. Empty: the system's.
  std::string certificate;  ///< The client's own, in PEM; empty: none. With `key`.
  std::string key;
};

struct HttpReply {
  long status = 0;
  std::string body;
};

/// To be called once, before other threads are started and before a sandbox is entered. Errors: system_error.
[[nodiscard]] Status start_http();

/// A connection that is kept between requests, to one server at a time. Owned by one thread at a time.
class Http {
 public:
  struct Request {
    std::string url;
    std::string body;
    std::string token;  ///< Of the header Authorization; empty: without one.
    std::chrono::milliseconds timeout{3'000};
    /// Bytes of the answer, or of one line of a stream. The keys of all names that a machine may publish fit in,
    /// whatever the prefix.
    std::size_t most = std::size_t{3} << 20;
  };

  /// Errors: system_error (no memory for a handle).
  static Result<Http> make(TlsOptions tls);
  Http(Http&&) noexcept = default;
  Http& operator=(Http&&) noexcept = default;

  /// One request and its whole answer, whatever its status. Blocks at most `timeout`; a third of it to connect, but 1 s
  /// at least. Errors: remote_unavailable (no connection, no answer in time, TLS does not agree), limit_reached (the
  /// answer is longer than `most`).
  Result<HttpReply> post(const Request& request);

  /// Each line of the answer as it comes, while `on_line` returns true. Blocks until it returns false, `stop` is true
  /// (noticed within about a second), the timeout is over (ok, too: that much was to be waited), or the answer ends.
  /// Returns the HTTP status, 0 if it was stopped before there was one; the lines of an answer that is not 200 are
  /// passed on as well. Errors: as post().
  Result<long> stream(const Request& request, const std::function<bool(std::string_view line)>& on_line,
                      const std::atomic<bool>& stop);

 private:
  struct Easy;
  struct EasyDeleter {
    void operator()(Easy* easy) const noexcept;
  };
  explicit Http(std::unique_ptr<Easy, EasyDeleter> easy) noexcept;
  std::unique_ptr<Easy, EasyDeleter> easy_;
};

}  // namespace lrpc::directory
