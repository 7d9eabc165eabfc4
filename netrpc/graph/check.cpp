#include "netrpc/graph/check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <ostream>

namespace lrpc::netrpc {

Result<std::string> read_graph_file(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return system_error(path, errno);
  struct stat about {};
  if (fstat(fileno(file.get()), &about) != 0) return system_error(path, errno);
  if (S_ISDIR(about.st_mode)) return Error{Errc::invalid_argument, path + ": is a directory, name a file"};
  std::string text(GraphDescription::kMaxText + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return system_error(path, errno);
  if (text.size() > GraphDescription::kMaxText)
    return Error{Errc::invalid_argument, fmt::format("{}: a description has at most {} bytes, take some out", path,
                                                     GraphDescription::kMaxText)};
  return text;
}

std::string with_path(std::string_view path, std::string_view errors) {
  std::string text;
  while (!errors.empty()) {
    const std::string_view line = errors.substr(0, errors.find('\n'));
    const bool numbered = line.front() >= '0' && line.front() <= '9';
    text += fmt::format("{}:{}{}\n", path, numbered ? "" : " ", line);
    errors.remove_prefix(std::min(errors.size(), line.size() + 1));
  }
  return text;
}

int check_graph_file(const std::string& path, const ProtocolKinds& kinds, std::ostream& out, GraphPicture picture,
                     const GraphRules& rules) {
  const auto wrong = [&out](std::string_view what) {
    out << what;
    return 1;
  };
  const Result<std::string> text = read_graph_file(path);
  if (!text) return wrong(text.error().message() + '\n');
  const Result<GraphDescription> description = GraphDescription::parse(text.value(), kinds);
  if (!description) return wrong(with_path(path, description.error().text));
  if (const Status fits = rules ? rules(description.value()) : Status(); !fits)
    return wrong(with_path(path, fits.error().message()));
  const std::size_t count = description.value().instances().size();
  switch (picture) {
    case GraphPicture::none:
      out << fmt::format("{}: {} protocol{}, all right\n", path, count, count == 1 ? "" : "s");
      break;
    case GraphPicture::text: out << description.value().draw_text(); break;
    case GraphPicture::svg: {
      const std::string svg = description.value().draw_svg();
      if (svg.empty()) return wrong(path + ": too large to draw, ask for the text\n");
      out << svg;
      break;
    }
  }
  return 0;
}

}  // namespace lrpc::netrpc
