#include "journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

namespace replicas {
namespace {

/// FNV-1a: detects records that a crash has torn, not forged ones.
std::uint64_t sum_of(std::string_view record) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char c : record) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

std::string framed(std::string_view record) {
  return std::to_string(record.size()) + " " + std::to_string(sum_of(record)) + "\n" + std::string(record) + "\n";
}

/// The record at the beginning of `text`; nullopt if there is no complete one.
std::optional<std::string_view> first_record(std::string_view text) {
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  const std::size_t head = text.find('\n');
  if (error != std::errc() || head == text.npos || length > Journal::kMostRecord) return std::nullopt;
  const std::string_view record = text.substr(head + 1, length);
  if (!text.starts_with(framed(record))) return std::nullopt;
  return record;
}

lrpc::Error wrong(const std::string& path, const char* why = std::strerror(errno)) {
  return {lrpc::Errc::system_error, path + ": " + why};
}

std::optional<std::string> read_all(int file) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t got = ::read(file, part.data(), part.size());
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

lrpc::Result<Journal> Journal::open(const std::string& path, const std::function<void(std::string_view)>& replay) {
  lrpc::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return wrong(path);
  const auto text = read_all(file.get());
  if (!text) return wrong(path);
  std::string_view left = *text;
  while (const auto record = first_record(left)) {
    replay(*record);
    left.remove_prefix(framed(*record).size());
  }
  // Only the last record can be torn.
  if (left.size() > framed(std::string(kMostRecord, ' ')).size()) return wrong(path, "it is damaged");
  if (!left.empty() && ::ftruncate(file.get(), static_cast<off_t>(text->size() - left.size())) != 0) return wrong(path);
  // Sync both, so that a crash of the machine can lose neither a record that was reported nor the file's name.
  const std::string directory = std::filesystem::absolute(path).parent_path();
  const lrpc::UniqueFd names(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!names || ::fsync(names.get()) != 0) return wrong(directory);
  if (::fsync(file.get()) != 0) return wrong(path);
  return Journal(std::move(file));
}

lrpc::Status Journal::append(std::string_view record) {
  const std::string text = framed(record);
  // After a torn record, replay would not find any later one: append no more.
  failed_ = failed_ || record.size() > kMostRecord ||
            ::write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
            ::fdatasync(file_.get()) != 0;
  if (failed_) return lrpc::Error{lrpc::Errc::system_error, "the journal cannot be written"};
  return {};
}

}  // namespace replicas
