#include "etcd/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "lookup/resolver.h"
#include "lrpc/detail/shim/printable.h"

namespace lrpc::directory {

struct Http::Easy {
  TlsOptions tls;
  CURL* handle = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};
};

void Http::EasyDeleter::operator()(Easy* easy) const noexcept {
  if (easy->handle != nullptr) curl_easy_cleanup(easy->handle);
  delete easy;
}

Http::Http(std::unique_ptr<Easy, EasyDeleter> easy) noexcept : easy_(std::move(easy)) {}

Status start_http() {
  if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK) return Error{Errc::system_error, "libcurl cannot be initialised"};
  return {};
}

Result<Http> Http::make(TlsOptions tls) {
  std::unique_ptr<Easy, EasyDeleter> easy(new Easy);
  easy->tls = std::move(tls);
  easy->handle = curl_easy_init();
  if (easy->handle == nullptr) return Error{Errc::system_error, "libcurl gives no handle"};
  return Http(std::move(easy));
}

namespace {

struct Headers {
  curl_slist* list = nullptr;
  bool whole = true;
  void add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list, line.c_str());
    if (longer != nullptr) list = longer;
    whole = whole && longer != nullptr;
  }
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list); }
};

/// Sets all options of a request except the function that takes the answer. Errors: system_error (no memory).
Status prepare(CURL* handle, char* error, const TlsOptions& tls, const Http::Request& request, Headers& headers) {
  headers.add("Content-Type: application/json");
  headers.add("Expect:");  // no "100 Continue" first
  if (!request.token.empty()) headers.add("Authorization: " + request.token);
  if (!headers.whole) return Error{Errc::system_error, "no memory for an HTTP request"};
  *error = '\0';
  curl_easy_reset(handle);  // the connection stays
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_PROXY, "");
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.c_str());
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  const long timeout = static_cast<long>(std::max<std::chrono::milliseconds::rep>(request.timeout.count(), 1));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, timeout);
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);  // or a timeout would wait for getaddrinfo(3)
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, std::min(timeout, std::max(1'000L, timeout / 3)));
  if (!tls.ca.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, tls.ca.c_str());
    // Otherwise the authorities in the system's directory, compiled into libcurl, are trusted as well.
    curl_easy_setopt(handle, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (!tls.certificate.empty()) {
    curl_easy_setopt(handle, CURLOPT_SSLCERT, tls.certificate.c_str());
    curl_easy_setopt(handle, CURLOPT_SSLKEY, tls.key.c_str());
  }
  return {};
}

Error unreachable(const Http::Request& request, CURLcode code, const char* detail) {
  const std::string what = request.url + ": " + shim::printable(*detail != '\0' ? detail : curl_easy_strerror(code));
  const std::string files = code == CURLE_COULDNT_RESOLVE_HOST ? forbidden_of(kResolverFiles) : std::string();
  if (files.empty()) return {Errc::remote_unavailable, what};
  return {Errc::remote_unavailable,
          "restart lrpc-directory: in its sandbox it cannot read what has taken the place of " + files +
              " since it began (" + what + ")"};
}
Error too_long(const Http::Request& request) {
  return {Errc::limit_reached, request.url + ": the answer is longer than " + std::to_string(request.most) + " bytes"};
}

/// What libcurl calls for each part of an answer. An exception must not pass its C frames: see perform().
template <class Answer>
std::size_t take_part(char* bytes, std::size_t, std::size_t count, void* into) {
  auto& answer = *static_cast<Answer*>(into);
  try {
    if (answer.takes({bytes, count})) return count;
  } catch (...) {
    answer.thrown = std::current_exception();
  }
  return 0;
}

/// Performs the request that has been prepared, whose answer goes to `answer`.
template <class Answer>
CURLcode perform(CURL* handle, Answer& answer) {
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &take_part<Answer>);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_easy_perform(handle);
  if (answer.thrown) std::rethrow_exception(answer.thrown);
  return code;
}

struct Whole {
  std::size_t most = 0;
  std::string body{};
  bool over = false;
  std::exception_ptr thrown{};

  bool takes(std::string_view part) {
    over = part.size() > most - body.size();
    if (!over) body.append(part);
    return !over;
  }
};

struct Lines {
  const std::function<bool(std::string_view)>* on_line = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::size_t most = 0;
  std::string rest{};  ///< The beginning of a line that has not ended yet.
  bool over = false;
  bool enough = false;
  std::exception_ptr thrown{};

  /// `seen`: so many bytes of `rest` have no end of a line.
  bool pass_on(std::size_t seen) {
    std::size_t begin = 0;
    for (std::size_t end = 0; !enough && (end = rest.find('\n', std::max(begin, seen))) != std::string::npos;
         begin = end + 1)
      if (end > begin) enough = !(*on_line)(std::string_view(rest).substr(begin, end - begin));
    rest.erase(0, std::min(begin, rest.size()));
    return !enough;
  }
  bool takes(std::string_view part) {
    over = part.size() > most || rest.size() > most - part.size();
    if (over) return false;
    const std::size_t seen = rest.size();
    rest.append(part);
    return pass_on(seen);
  }
  static int progress(void* into, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& self = *static_cast<Lines*>(into);
    self.enough = self.enough || self.stop->load(std::memory_order_relaxed);
    return self.enough ? 1 : 0;
  }
};

}  // namespace

Result<HttpReply> Http::post(const Request& request) {
  Headers headers;
  CURL* const handle = easy_->handle;
  if (auto ready = prepare(handle, easy_->error.data(), easy_->tls, request, headers); !ready) return ready.error();
  Whole whole{.most = request.most};
  const CURLcode code = perform(handle, whole);
  if (whole.over) return too_long(request);
  if (code != CURLE_OK) return unreachable(request, code, easy_->error.data());
  HttpReply reply{0, std::move(whole.body)};
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
}

Result<long> Http::stream(const Request& request, const std::function<bool(std::string_view)>& on_line,
                          const std::atomic<bool>& stop) {
  Headers headers;
  CURL* const handle = easy_->handle;
  if (auto ready = prepare(handle, easy_->error.data(), easy_->tls, request, headers); !ready) return ready.error();
  Lines lines{.on_line = &on_line, .stop = &stop, .most = request.most};
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &Lines::progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &lines);
  // Close the connection with the stream: the next request must not wait for the rest of it.
  curl_easy_setopt(handle, CURLOPT_FORBID_REUSE, 1L);
  const CURLcode code = perform(handle, lines);
  if (lines.over) return too_long(request);
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (lines.enough) return status;
  if (code == CURLE_OPERATION_TIMEDOUT && status == 200) return status;
  if (code != CURLE_OK) return unreachable(request, code, easy_->error.data());
  if (!lines.rest.empty()) {
    lines.rest.push_back('\n');
    lines.pass_on(lines.rest.size() - 1);
  }
  return status;
}

}  // namespace lrpc::directory
