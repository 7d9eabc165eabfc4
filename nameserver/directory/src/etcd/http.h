// POST over HTTP/1.1 with libcurl, which only http.h and http.cpp use. The other side is not trusted: every answer has
// a bound on its size and its time, and redirections, proxies of the environment and other protocols are not used.
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
  std::string ca;           ///< File with the authorities that may have signed the server's certificate. Empty: the
                            ///< system's.
  std::string certificate;  ///< File with the client's own, in PEM; empty: none. With `key`.
  std::string key;
};

struct HttpReply {
  long status = 0;
  std::string body;
};

/// Call it once, before other threads are started and before a sandbox is entered. Errors: system_error.
[[nodiscard]] Status start_http();

/// A connection that is kept between requests, to one server at a time. Used by one thread at a time.
class Http {
 public:
  struct Request {
    std::string url;
    std::string body;
    std::string token;  ///< For the header Authorization; empty: without it.
    std::chrono::milliseconds timeout{3'000};
    /// Most bytes of the answer, or of one line of a stream. The keys of all names that a machine may publish fit,
    /// whatever the prefix.
    std::size_t most = std::size_t{3} << 20;
  };

  /// Errors: system_error (no memory for a handle).
  static Result<Http> make(TlsOptions tls);
  Http(Http&&) noexcept = default;
  Http& operator=(Http&&) noexcept = default;

  /// Sends one request and returns its whole answer, whatever its status. Blocks at most `timeout`, of which a third,
  /// but at least 1 s, is for connecting. Errors: remote_unavailable (no connection, no answer in time, TLS fails),
  /// limit_reached (the answer is longer than `most`).
  Result<HttpReply> post(const Request& request);

  /// Passes each line of the answer as it comes to `on_line`. Blocks until that returns false, `stop` is true (noticed
  /// within about a second), the timeout is over (no error: the wait is over), or the answer ends. Returns the HTTP
  /// status, 0 if it was stopped before there was one. The lines of an answer whose status is not 200 are passed on as
  /// well. Throws what `on_line` throws. Errors: as post().
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
